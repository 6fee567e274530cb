// How interrupted stats and masks go on: their lists of records, and what is left beside a table.
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "io/files/json_types.h"
#include "tests/cli/common/fault_settings.h"
#include "tests/support/answers.h"
#include "tests/support/catch.h"
#include "tests/support/program.h"
#include "tests/support/program_heads.h"
#include "tests/support/sanitized.h"
#include "tests/support/skip.h"
#include "tests/support/synthetic.h"

using namespace attnscope;
using namespace attnscope::test;

TEST_CASE("interrupted stats go on where they were") {
  const TemporaryFolder folder;
  const std::string capture = folder / "heads.safetensors";
  write_sparse_heads(capture, 12, 2000, 64);
  const std::string whole = folder / "whole.json";
  const std::string out = folder / "out.json";
  // The stop comes with the write of a record in the midst of twelve.
  const long writes = calls_of({"stats", capture, "-o", whole, "--quiet"}, "stop-write");
  const auto result =
      run_attnscope({"stats", capture, "-o", out, "--quiet"}, with_fault("stop-write", writes / 2));
  INFO(result.err);
  REQUIRE(result.exit_code == 4);
  CHECK(result.err.find(" of 12 heads are in " + out + ".part; --resume goes on") !=
        std::string::npos);
  CHECK_FALSE(std::filesystem::exists(out));
  const auto blocked = run_attnscope({"stats", capture, "-o", out, "--quiet"});
  CHECK(blocked.exit_code == 1);
  CHECK(blocked.err.find("--resume") != std::string::npos);
  const auto other =
      run_attnscope({"stats", capture, "-o", out, "--quiet", "--resume", "--sample", "9"});
  CHECK(other.exit_code == 1);
  CHECK(other.err.find("options") != std::string::npos);
  const auto resumed = run_attnscope({"stats", capture, "-o", out, "--resume", "--force"});
  INFO(resumed.err);
  REQUIRE(resumed.exit_code == 0);
  CHECK(resumed.err.find("resuming") != std::string::npos);
  CHECK(read_file(out) == read_file(whole));
  CHECK_FALSE(std::filesystem::exists(out + ".part"));
}

TEST_CASE("records that were changed are refused by their line, and those of an older version") {
  const TemporaryFolder folder;
  const std::string capture = folder / "heads.safetensors";
  write_sparse_heads(capture, 6, 200, 16);
  const std::string out = folder / "out.json", part = out + ".part";
  const std::vector<std::string> stats{"stats", capture, "-o", out, "--quiet"};
  const auto resume = [&] {
    std::vector<std::string> arguments = stats;
    arguments.emplace_back("--resume");
    return run_attnscope(arguments);
  };
  const long writes = calls_of(stats, "stop-write");
  const std::string whole = read_file(out);
  std::filesystem::remove(out);
  REQUIRE(run_attnscope(stats, with_fault("stop-write", writes / 2)).exit_code == 4);
  const std::string left = read_file(part);
  std::string changed = left;
  char& digit = changed[changed.find("\"entropy\":") + 10];
  digit = digit == '9' ? '8' : '9';
  std::ofstream(part, std::ios::binary | std::ios::trunc) << changed;
  const auto refused = resume();
  CHECK(refused.exit_code == 1);
  CHECK(refused.err.find(part + ": line 2: is damaged: its checksum is wrong (--force alone gives "
                                "it up)") != std::string::npos);
  CHECK(read_file(part) == changed);
  CHECK_FALSE(std::filesystem::exists(out));

  std::string older = left;
  older.replace(older.find("part/2"), 6, "part/1");
  std::ofstream(part, std::ios::binary | std::ios::trunc) << older;
  const auto old = resume();
  CHECK(old.exit_code == 1);
  CHECK(old.err.find("was left by another version of attnscope") != std::string::npos);
  CHECK(old.err.find("--force alone gives it up") != std::string::npos);
  CHECK(read_file(part) == older);

  // A record that was cut off is measured again.
  std::ofstream(part, std::ios::binary | std::ios::trunc) << left.substr(0, left.size() - 5);
  const auto cut = resume();
  INFO(cut.err);
  CHECK(cut.exit_code == 0);
  CHECK(read_file(out) == whole);
}

TEST_CASE("whenever stats or mask are killed, --resume ends well and leaves nothing else") {
  if (sanitized()) {
    skip_test("a sanitizer must be loaded first");
    return;
  }
  const TemporaryFolder folder;
  const std::string capture = folder / "heads.safetensors";
  write_sparse_heads(capture, 3, 64, 16);
  struct Case {
    std::string name;
    std::vector<std::string> arguments;
  };
  const std::vector<Case> cases{{"out.json", {"stats", capture}},
                                {"out.h5", {"stats", capture}},
                                {"out.csv", {"stats", capture}},
                                {"mask.csv", {"mask", capture, "--mask", "causal"}}};
  for (const Case& c : cases) {
    const TemporaryFolder here;
    const std::string out = here / c.name;
    std::vector<std::string> arguments = c.arguments;
    arguments.insert(arguments.end(), {"-o", out, "--quiet"});
    const long steps = calls_of(arguments, "kill");
    const std::string bytes = read_file(out);
    REQUIRE(steps > 3);
    std::vector<std::string> again = arguments;
    again.emplace_back("--resume");
    for (long step = 1; step <= steps; ++step) {
      INFO(c.name << ": killed before step " << step << " of " << steps);
      std::filesystem::remove(out);
      REQUIRE(run_attnscope(arguments, with_fault("kill", step)).exit_code == 128 + SIGKILL);
      const bool is_told = c.name.ends_with(".csv") && std::filesystem::exists(out) &&
                           !std::filesystem::exists(out + ".part");
      const auto resumed = run_attnscope(again);
      INFO(resumed.err);
      REQUIRE(read_file(out) == bytes);
      // With nothing beside it a .csv may be anybody's.
      REQUIRE(resumed.exit_code == (is_told ? 1 : 0));
      if (is_told) CHECK(resumed.err.find("--force replaces it") != std::string::npos);
      for (const auto& entry : std::filesystem::directory_iterator(here.path())) {
        const std::string name = entry.path().filename().string();
        INFO(name);
        CHECK((name == c.name || name == c.name + ".lock"));
      }
    }
  }
}

TEST_CASE("a .csv that another run made is not taken for what stands beside it") {
  const TemporaryFolder folder;
  const std::string capture = folder / "heads.safetensors";
  write_sparse_heads(capture, 3, 64, 16);
  const std::string out = folder / "out.csv";
  const std::vector<std::string> stats{"stats", capture, "-o", out, "--quiet", "--force"};
  const long writes = calls_of(stats, "kill-write"), steps = calls_of(stats, "kill");
  const std::string bytes = read_file(out);
  const std::string other = "step,layer\n";
  const auto put_other = [&] { std::ofstream(out, std::ios::binary | std::ios::trunc) << other; };
  const auto run = [&](const std::string& how) {
    return run_attnscope({"stats", capture, "-o", out, "--quiet", "--resume", how});
  };
  // Some of the records, then all of them.
  for (const bool all : {false, true}) {
    INFO("all records: " << all);
    put_other();
    const auto killed = run_attnscope(
        stats, all ? with_fault("kill", steps - 2) : with_fault("kill-write", writes - 1));
    REQUIRE(killed.exit_code == 128 + SIGKILL);
    if (read_file(out) != other) put_other();
    REQUIRE(std::filesystem::exists(out + ".part"));
    const auto refused = run("--threads=1");
    INFO(refused.err);
    CHECK(refused.exit_code == 1);
    CHECK(refused.err.find(all ? "is not what the records in out.csv.part make"
                               : " of 3 heads of this run stand beside it") != std::string::npos);
    CHECK(read_file(out) == other);
    CHECK_FALSE(std::filesystem::exists(out + ".part.new"));
    const auto done = run("--force");
    INFO(done.err);
    CHECK(done.exit_code == 0);
    CHECK(read_file(out) == bytes);
    CHECK_FALSE(std::filesystem::exists(out + ".part"));
  }
}

TEST_CASE("a disk that fills up with the table keeps the records alone, and says so") {
  if (sanitized()) {
    skip_test("a sanitizer must be loaded first");
    return;
  }
  const TemporaryFolder folder;
  const std::string capture = folder / "heads.safetensors";
  write_sparse_heads(capture, 3, 64, 16);
  for (const char* name : {"out.h5", "out.json", "out.csv"}) {
    const std::string out = folder / name;
    const std::vector<std::string> stats{"stats", capture, "-o", out, "--quiet"};
    const long writes = calls_of(stats, "pwrite");
    const std::string bytes = read_file(out);
    std::filesystem::remove(out);
    const auto full = run_attnscope(stats, with_fault("pwrite", writes));
    INFO(full.err);
    CHECK(full.exit_code == 1);
    CHECK(full.err.find("3 of 3 heads are in " + out + ".part; --resume goes on") !=
          std::string::npos);
    CHECK_FALSE(std::filesystem::exists(out + ".part.new"));
    CHECK_FALSE(std::filesystem::exists(out));
    REQUIRE(run_attnscope({"stats", capture, "-o", out, "--quiet", "--resume"}).exit_code == 0);
    CHECK(read_file(out) == bytes);
  }
}

TEST_CASE("records of stats are made durable together, and a failure of that is told") {
  if (sanitized()) {
    skip_test("a sanitizer must be loaded first");
    return;
  }
  const TemporaryFolder folder;
  const std::string capture = folder / "heads.safetensors";
  write_sparse_heads(capture, 60, 64, 16);
  const std::string out = folder / "out.json";
  const std::string count = folder / "count";
  const auto counted =
      run_attnscope({"stats", capture, "-o", out, "--quiet"}, with_fault("fdatasync", -1, count));
  INFO(counted.err);
  REQUIRE(counted.exit_code == 0);
  const long syncs = std::atol(read_file(count).c_str());
  CHECK(syncs >= 1);
  CHECK(syncs < 30);
  std::filesystem::remove(out);
  const auto failed =
      run_attnscope({"stats", capture, "-o", out, "--quiet"}, with_fault("fdatasync", 1));
  INFO(failed.err);
  CHECK(failed.exit_code == 1);
  CHECK(failed.err.find("out.json.part: fdatasync failed") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(out));
}

TEST_CASE("a complete output is not computed again, and nothing else is taken for one") {
  const TemporaryFolder folder;
  const std::string capture = sample("moving-shapes");
  const auto stats = [&](const std::string& out, std::vector<std::string> more) {
    more.insert(more.begin(), {"stats", capture, "--layers", "1", "-o", out});
    return run_attnscope(more);
  };
  for (const char* name : {"s.json", "s.h5"}) {
    const std::string out = folder / name;
    REQUIRE(stats(out, {"--quiet"}).exit_code == 0);
    const std::string bytes = read_file(out);
    const auto again = stats(out, {"--resume"});
    INFO(again.err);
    CHECK(again.exit_code == 0);
    CHECK(again.err.find("is complete already") != std::string::npos);
    // --Json prints what the undisturbed run does.
    const auto printed = stats(out, {"--resume", "--json", "--quiet"});
    INFO(printed.err);
    CHECK(printed.exit_code == 0);
    CHECK(answer_alone(printed.out) ==
          answer_alone(stats(folder / ("again-" + std::string(name)), {"--json", "--quiet"}).out));
    CHECK(read_file(out) == bytes);
    const auto other = stats(out, {"--resume", "--sample", "9"});
    INFO(other.err);
    CHECK(other.exit_code == 1);
    CHECK(other.err.find("sample: expected 9, got null") != std::string::npos);
    CHECK(read_file(out) == bytes);
    CHECK(stats(out, {"--resume", "--sample", "9", "--force", "--quiet"}).exit_code == 0);
    CHECK(read_file(out) != bytes);
  }
  const std::string csv = folder / "s.csv";
  std::ofstream(csv) << "step,layer\n";
  CHECK(stats(csv, {"--resume"}).exit_code == 1);
  CHECK(read_file(csv) == "step,layer\n");
  const std::string part = folder / "t.json.part";
  std::ofstream(part) << "something else\n";
  const auto refused = stats(folder / "t.json", {"--resume"});
  INFO(refused.err);
  CHECK(refused.exit_code == 1);
  CHECK(refused.err.find("no interrupted run") != std::string::npos);
  CHECK(read_file(part) == "something else\n");
}
