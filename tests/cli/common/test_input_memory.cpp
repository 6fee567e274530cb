#include "tests/cli/common/large_inputs.h"
#include "tests/support/catch.h"
#include "tests/support/program.h"
#include "tests/support/sanitized.h"
#include "tests/support/skip.h"

using namespace attnscope::test;

namespace {

constexpr int64_t kMiB = 1 << 20;
constexpr int64_t kBudget = 64 * kMiB;
/// Bytes that a run may have resident beyond its budget.
constexpr int64_t kAllowance = 64 * kMiB;

struct Run {
  const char* command;
  std::vector<std::string> options;
  const char* out;  ///< file name for -o; null: it has none
};

/// Every command that reads a capture; those of all heads read every byte of q and k. Fewer heads
/// than 24 would not show memory that the allocator keeps from one head to the next.
const std::vector<Run> kRuns{
    {"info", {"--scan"}, nullptr},
    {"query", {"--index", "5", "--cache", "none", "--memory", "64MiB"}, "row.npy"},
    {"export", {"--rows", "0:2", "--no-sync", "--memory", "64MiB"}, "maps.h5"},
    {"stats", {"--heads", "1", "--sample", "16", "--memory", "64MiB"}, "stats.csv"},
    {"render",
     {"--heads", "1", "--picture", "filmstrip", "--query", "1,2,3", "--cache", "none", "--memory",
      "64MiB"},
     "film.png"},
    {"convert", {"--heads", "1-4"}, "part.safetensors"},
    {"convert", {"--heads", "1-2"}, "part"},
    {"verify", {}, nullptr}};

}  // namespace

TEST_CASE("peak memory stays within --memory + 64 MiB for every form of input") {
  if (sanitized()) {
    skip_test("a sanitizer inflates memory");
    return;
  }
  for (const auto& [form, name] : input_forms()) {
    const TemporaryFolder folder;
    // q, k and v take 4.5 times the budget. Unpacking again and again takes minutes: a few heads
    // then.
    const bool slow = form == InputForm::npz_deflated || form == InputForm::hdf5_largest;
    const int64_t heads = form == InputForm::hdf5_largest ? 16 : 24;
    const TemporaryFolder input_folder;
    const auto input = write_large_input(form, input_folder.path(), heads, 32768, 64);
    for (const Run& run : kRuns) {
      // A row of it unpacks 16 MiB, some thousand times a command.
      const std::string command = run.command;
      if (form == InputForm::hdf5_largest && command != "query" && command != "export") continue;
      std::vector<std::string> arguments{run.command};
      arguments.insert(arguments.end(), input.begin(), input.end());
      arguments.insert(arguments.end(), {"--grid", "16x32x64", "--quiet"});
      arguments.insert(arguments.end(), run.options.begin(), run.options.end());
      const bool all = run.options.empty() || run.options[0] != "--heads";
      if (slow && all) arguments.insert(arguments.end(), {"--heads", "0-3"});
      if (run.out != nullptr) arguments.insert(arguments.end(), {"-o", folder / run.out});
      const auto result = run_attnscope(arguments);
      INFO(name << ", " << run.command << ": peak " << result.peak_bytes / kMiB << " MiB\n"
                << result.err);
      CHECK(result.exit_code == 0);
      CHECK(result.peak_bytes <= kBudget + kAllowance);
    }
  }
}
