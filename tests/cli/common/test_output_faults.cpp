// Failing writes, syncs, renames and allocations in the commands other than export: an error that
// leaves no output, no matter which call failed, and a second run that makes the same bytes.
#include <algorithm>
#include <csignal>

#include "tests/cli/common/fault_settings.h"
#include "tests/support/catch.h"
#include "tests/support/program.h"
#include "tests/support/skip.h"
#include "tests/support/synthetic.h"

using namespace attnscope::test;

namespace {

struct Command {
  std::string output;
  std::vector<std::string> arguments;
};

/// A failure at the n-th call of `kind`, and what is left of it.
void fail_and_repeat(const Command& command, const std::string& kind, long n,
                     const std::string& bytes) {
  INFO(command.output << ": " << kind << " " << n);
  const auto broken = run_attnscope(command.arguments, with_fault(kind, n));
  INFO(broken.err);
  // The JSON library's destructors allocate: there the process ends, as if it had been killed.
  const bool ended = kind == "new" && broken.exit_code == 128 + SIGABRT;
  if (broken.exit_code != 0 && !ended) {
    REQUIRE(broken.exit_code == 1);
    REQUIRE(broken.err.find("attnscope: ") != std::string::npos);
  }
  if (std::filesystem::exists(command.output)) {
    // A fault once the file has its name (in its folder's sync, the summary) leaves it whole.
    REQUIRE(read_file(command.output) == bytes);
  } else {
    REQUIRE(broken.exit_code != 0);
  }
  auto again = command.arguments;
  again.emplace_back("--force");
  const auto repeated = run_attnscope(again);
  INFO(repeated.err);
  REQUIRE(repeated.exit_code == 0);
  REQUIRE(read_file(command.output) == bytes);
  REQUIRE_FALSE(std::filesystem::exists(command.output + ".part"));
  std::filesystem::remove(command.output);
}

}  // namespace

TEST_CASE("no command leaves half an output behind") {
  if (sanitized()) {
    skip_test("a sanitizer has its own allocator");
    return;
  }
  const TemporaryFolder folder;
  const std::string capture = folder / "head.safetensors";
  write_synthetic_head(capture, 300, 16);
  const std::string grid = "5x6x10";
  const std::vector<Command> commands{
      {folder / "stats.json", {"stats", capture}},
      {folder / "stats.h5", {"stats", capture}},
      {folder / "pooled.h5", {"export", capture, "--product", "pooled", "--block", "64"}},
      {folder / "row.h5", {"query", capture, "--index", "7"}},
      {folder / "row.npy", {"query", capture, "--index", "7"}},
      {folder / "map.png", {"render", capture, "--picture", "matrix"}},
      {folder / "masks.csv", {"mask", capture, "--mask", "causal"}},
      {folder / "flow.h5", {"rollout", capture, "--index", "3"}},
      {folder / "made.safetensors", {"synth", "--grid", grid, "--heads", "2"}}};
  for (Command command : commands) {
    command.arguments.insert(command.arguments.end(), {"-o", command.output, "--quiet"});
    if (command.arguments.front() != "synth") {
      command.arguments.insert(command.arguments.end(), {"--grid", grid, "--threads", "1"});
    }
    const auto whole = run_attnscope(command.arguments);
    INFO(whole.err);
    REQUIRE(whole.exit_code == 0);
    const std::string bytes = read_file(command.output);
    REQUIRE_FALSE(bytes.empty());
    std::filesystem::remove(command.output);
    for (const std::string kind : {"pwrite", "fsync", "rename", "new"}) {
      INFO(command.output << ": " << kind);
      const long calls = calls_of(command.arguments, kind);
      std::filesystem::remove(command.output);
      REQUIRE((calls > 0 || kind == "pwrite" || kind == "rename"));
      for (long n = 1; n <= calls; n += std::max(1L, calls / 5)) {
        fail_and_repeat(command, kind, n, bytes);
      }
    }
  }
}
