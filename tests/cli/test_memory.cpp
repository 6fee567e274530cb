#include "tests/catch.h"
#include "tests/cli/program.h"
#include "tests/cli/synthetic.h"

using namespace attnscope::test;

namespace {

constexpr int64_t kMiB = 1 << 20;
/// What a run may have resident beyond its budget.
constexpr int64_t kAllowance = 64 * kMiB;

}  // namespace

TEST_CASE("peak memory stays within --memory + 64 MiB, whatever the sequence length") {
  if (sanitized()) {
    WARN("skipped: a sanitizer inflates memory");
    return;
  }
  struct Case {
    int64_t tokens, d;
    std::vector<std::string> arguments;
    int64_t budget_mib;
  };
  // Enough row panels that buffers are reused many times; whole maps would only take longer.
  const std::vector<Case> cases{
      {17776, 64, {"--rows", "0:6144"}, 256},
      {45106, 64, {"--rows", "0:3072"}, 256},
      {45106, 64, {"--rows", "0:1536", "--dtype", "f32"}, 64},
      {119056, 128, {"--queries", "0-100000:5000,119055"}, 256},
      {119056, 128, {"--rows", "50000:50384"}, 128},
  };
  for (const Case& c : cases) {
    const TemporaryFolder folder;
    const std::string capture = folder / "head.safetensors";
    write_synthetic_head(capture, c.tokens, c.d);
    std::vector<std::string> arguments{
        "export",  capture,     "-o",       folder / "out.h5",
        "--quiet", "--no-sync", "--memory", std::to_string(c.budget_mib) + "MiB"};
    arguments.insert(arguments.end(), c.arguments.begin(), c.arguments.end());
    const auto result = run_attnscope(arguments);
    INFO("S = " << c.tokens << ", budget " << c.budget_mib << " MiB, peak "
                << result.peak_bytes / kMiB << " MiB\n"
                << result.err);
    CHECK(result.exit_code == 0);
    CHECK(result.peak_bytes <= c.budget_mib * kMiB + kAllowance);
  }
}

TEST_CASE("the smallest budget that an error names is enough") {
  const TemporaryFolder folder;
  const std::string capture = folder / "head.safetensors";
  write_synthetic_head(capture, 4096, 64);
  const auto refused =
      run_attnscope({"export", capture, "-o", folder / "out.h5", "--memory", "100KiB", "--quiet"});
  INFO(refused.err);
  REQUIRE(refused.exit_code == 1);
  CHECK_FALSE(std::filesystem::exists(folder / "out.h5"));
}
