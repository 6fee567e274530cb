#include <algorithm>
#include <numeric>
#include <random>

#include "core/base/error.h"
#include "core/base/plan_share.h"
#include "tests/support/catch.h"

using namespace attnscope;

namespace {

int64_t sum_of(const std::vector<int64_t>& work, IndexRange range) {
  return std::accumulate(work.begin() + range.begin, work.begin() + range.end, int64_t{0});
}

std::string refusal(const std::string& text) {
  try {
    PlanShare::parse(text, "--shard");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::usage);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("shares are runs that cover all units and differ by a unit's work at most") {
  std::mt19937 random(7);  // NOLINT(cert-msc51-cpp)
  for (const size_t units : {0, 1, 2, 5, 48, 1000}) {
    std::vector<int64_t> work(units);
    for (int64_t& w : work) w = std::uniform_int_distribution<int64_t>(1, 1'000'000)(random);
    const int64_t total = sum_of(work, {0, std::ssize(work)});
    const int64_t most = units == 0 ? 0 : *std::max_element(work.begin(), work.end());
    for (const int64_t count : {1, 2, 3, 7, 64, 65536}) {
      const std::vector<IndexRange> shares = share_out(work, count);
      REQUIRE(std::ssize(shares) == count);
      int64_t next = 0;
      for (const IndexRange& share : shares) {
        REQUIRE(share.begin == next);
        REQUIRE(share.end >= share.begin);
        REQUIRE(sum_of(work, share) <= total / count + most + 1);
        next = share.end;
      }
      CHECK(next == std::ssize(work));
    }
  }
}

TEST_CASE("shares go by work, not by number") {
  // A joint call of four heads, and a cross-attention call of four that cost a tenth.
  const std::vector<int64_t> work{100, 100, 100, 100, 10, 10, 10, 10};
  const auto shares = share_out(work, 2);
  CHECK(shares[0] == IndexRange{0, 2});
  CHECK(shares[1] == IndexRange{2, 8});
}

TEST_CASE("works near the end of the numbers are shared out alike") {
  const int64_t huge = int64_t{1} << 62;
  const auto shares = share_out(std::vector<int64_t>{huge, huge, huge, huge}, 4);
  for (int64_t i = 0; i < 4; ++i) CHECK(shares[static_cast<size_t>(i)] == IndexRange{i, i + 1});
  const auto none = share_out(std::vector<int64_t>{0, 0}, 2);
  CHECK(none[0] == IndexRange{0, 1});
  CHECK(none[1] == IndexRange{1, 2});
}

TEST_CASE("a share is I/N, counted from 0") {
  CHECK(PlanShare::parse("0/1", "--shard") == PlanShare{0, 1});
  CHECK(PlanShare::parse("6/7", "--shard").text() == "6/7");
  for (const char* text : {"", "3", "/", "1/", "/2", "a/2", "1/b", "-1/2", "1/-2", "+1/2", "1.0/2",
                           "1/2/3", " 1/2", "1/2 ", "99999999999999999999/2"}) {
    INFO(text);
    CHECK(refusal(text).find("expected I/N") != std::string::npos);
  }
  CHECK(refusal("0/0").find("N must be 1 to 65536") != std::string::npos);
  CHECK(refusal("0/65537").find("N must be 1 to 65536") != std::string::npos);
  CHECK(refusal("2/2").find("I must be 0 to 1, counted from 0 (got 2)") != std::string::npos);
}
