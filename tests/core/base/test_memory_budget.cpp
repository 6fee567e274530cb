#include <thread>
#include <vector>

#include "core/base/memory_budget.h"
#include "tests/support/catch.h"
#include "tests/support/helpers.h"

using namespace attnscope;
using attnscope::test::refused;

TEST_CASE("reservations come out of the budget and go back to it") {
  MemoryBudget budget(1000);
  {
    const MemoryReservation first = budget.reserve(600, "tiles");
    CHECK(first.bytes() == 600);
    CHECK(budget.used() == 600);
    CHECK(budget.available() == 400);
    CHECK(refused([&] { budget.reserve(401, "packed K"); }, ErrorCode::resource,
                  {"packed K", "401 B", "600 B", "1000 B"}) == "");
    CHECK(budget.used() == 600);
    const MemoryReservation second = budget.reserve(400, "rows");
    CHECK(budget.available() == 0);
    const MemoryReservation nothing = budget.reserve(0, "nothing");
    CHECK(nothing.bytes() == 0);
  }
  CHECK(budget.used() == 0);
  CHECK(budget.peak() == 1000);
  CHECK(budget.limit() == 1000);
}

TEST_CASE("a reservation that is moved is given back once") {
  MemoryBudget budget(100);
  MemoryReservation a = budget.reserve(30, "a");
  MemoryReservation b = std::move(a);
  CHECK(budget.used() == 30);
  MemoryReservation c = budget.reserve(20, "c");
  c = std::move(b);
  CHECK(budget.used() == 30);
  c = MemoryReservation();
  CHECK(budget.used() == 0);
}

TEST_CASE("threads never take more than the budget together") {
  MemoryBudget budget(1000);
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 2000; ++round) {
        try {
          const auto reservation = budget.reserve(300, "a worker");
        } catch (const Error&) {
          // Three others hold theirs.
        }
      }
    });
  }
  threads.clear();
  CHECK(budget.used() == 0);
  CHECK(budget.peak() <= 900);
  CHECK(budget.peak() >= 300);
}

TEST_CASE("sizes as users write them") {
  const auto size = [](const char* text) { return parse_size(text, "--memory", 1000000); };
  CHECK(size("256MiB") == int64_t{256} << 20);
  CHECK(size("4GB") == 4000000000);
  CHECK(size("1.5GiB") == int64_t{3} << 29);
  CHECK(size("64KiB") == 65536);
  CHECK(size("2TiB") == int64_t{2} << 40);
  CHECK(size("512kb") == 512000);
  CHECK(size("1573888B") == 1573888);
  CHECK(size("50%") == 500000);
  CHECK(size("12.5%") == 125000);
  CHECK(size("100%") == 1000000);
  for (const std::string text :
       {"", "12", "GiB", "-1GiB", "1.5", "1XiB", "1 GiB x", "0B", "0%", "101%", "1e3MiB", "infGiB",
        "nan%", "0x10MiB", "99999999999TiB", "0.1B"}) {
    INFO(text);
    CHECK(refused([&] { parse_size(text, "--memory", 1000); }, ErrorCode::usage,
                  {"--memory " + text}) == "");
  }
}

TEST_CASE("a size that is no share of anything advises none") {
  CHECK(parse_size("4GB", "--max-size", -1) == 4000000000);
  for (const std::string text : {"lots", "12", "1XiB", "50%"}) {
    INFO(text);
    try {
      parse_size(text, "--max-size", -1);
      FAIL("was taken");
    } catch (const Error& error) {
      const std::string said = error.what();
      CHECK(said.find('%') == (text == "50%" ? said.find("50%") + 2 : std::string::npos));
      CHECK(said.rfind('%') == said.find('%'));
    }
  }
}

TEST_CASE("byte counts for people") {
  CHECK(format_bytes(0) == "0 B");
  CHECK(format_bytes(1023) == "1023 B");
  CHECK(format_bytes(1024) == "1.00 KiB");
  CHECK(format_bytes(int64_t{3} << 29) == "1.50 GiB");
  CHECK(format_bytes((int64_t{1} << 20) - 1) == "1.00 MiB");
  CHECK(format_bytes(int64_t{1} << 62) == "4.00 EiB");
}
