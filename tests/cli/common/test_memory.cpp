#include "tests/support/call_file.h"
#include "tests/support/catch.h"
#include "tests/support/program.h"
#include "tests/support/skip.h"
#include "tests/support/synthetic.h"

using namespace attnscope::test;

namespace {

constexpr int64_t kMiB = 1 << 20;
/// Bytes that a run may have resident beyond its budget.
constexpr int64_t kAllowance = 64 * kMiB;

}  // namespace

TEST_CASE("peak memory stays within --memory + 64 MiB, whatever the sequence length") {
  if (sanitized()) {
    skip_test("a sanitizer inflates memory");
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
      {45106, 64, {"--rows", "0:768", "--compress", "gzip"}, 128},
      {119056, 128, {"--rows", "0:128", "--topk", "64"}, 256},
      // All keys are kept: twice as much as the weights that they are chosen from.
      {200000, 16, {"--rows", "0:64", "--topk", "200000", "--threads", "2"}, 64},
      {45106, 64, {"--rows", "0:256", "--threshold", "1e-5"}, 256},
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

TEST_CASE("the promise holds for inputs ten times as large as the budget") {
  if (sanitized()) {
    skip_test("a sanitizer inflates memory");
    return;
  }
  // Q and K are ten times the budget; zeros, of which the file system keeps none.
  struct Case {
    int64_t tokens, heads, budget_mib;
    std::vector<std::string> arguments;
  };
  const std::vector<Case> cases{{70912, 38, 128, {"--rows", "0:32"}},
                                {119056, 23, 128, {"--rows", "0:8"}},
                                {119056, 89, 512, {"--product", "lse", "--rows", "0:16"}}};
  for (const Case& c : cases) {
    const TemporaryFolder folder;
    const std::string capture = folder / "heads.safetensors";
    write_sparse_heads(capture, c.heads, c.tokens, 128);
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

TEST_CASE("queries of many heads stay within --memory + 64 MiB") {
  if (sanitized()) {
    skip_test("a sanitizer inflates memory");
    return;
  }
  const TemporaryFolder folder;
  const std::string capture = folder / "heads.safetensors";
  constexpr int64_t kHeads = 4096;
  constexpr int64_t kTokens = 4096;
  // Q and K of zeros: rows of equal weights.
  CallFile call;
  call.pair({1, kHeads, kTokens, 1}, {1, 1, kTokens, 1}, "BF16").fact("grid", "4x32x32");
  call.write(capture);
  for (const std::string name : {"rows.npy", "rows.h5"}) {
    const auto result = run_attnscope({"query", capture, "--index", "7", "-o", folder / name,
                                       "--memory", "96MiB", "--quiet", "--threads", "2"});
    INFO(name << ": peak " << result.peak_bytes / kMiB << " MiB\n" << result.err);
    CHECK(result.exit_code == 0);
    CHECK(result.peak_bytes <= 96 * kMiB + kAllowance);
  }
}

TEST_CASE("results of very many heads count against --memory") {
  const TemporaryFolder folder;
  const std::string capture = folder / "heads.safetensors";
  constexpr int64_t kHeads = 16384;
  CallFile call;
  call.pair({1, kHeads, 8, 1}, {1, kHeads, 8, 1}, "BF16");
  call.write(capture);
  const std::vector<std::vector<std::string>> commands{
      {"stats", capture, "--json"},
      {"mask", capture, "--mask", "causal", "--json"},
      {"query", capture, "--index", "3", "--json"},
      {"diff", capture, capture, "--json"}};
  for (const auto& command : commands) {
    INFO(command.front());
    std::vector<std::string> arguments = command;
    arguments.insert(arguments.end(), {"--quiet", "--threads", "2", "--memory", "48MiB"});
    const auto refused = run_attnscope(arguments);
    INFO(refused.err);
    CHECK(refused.exit_code == 1);
    CHECK(refused.err.find("16384 results: needs ") != std::string::npos);
    if (sanitized() || command.front() == "mask") continue;
    arguments.back() = "256MiB";
    const auto result = run_attnscope(arguments);
    INFO("peak " << result.peak_bytes / kMiB << " MiB\n" << result.err);
    CHECK(result.exit_code == 0);
    CHECK(result.peak_bytes <= 256 * kMiB + kAllowance);
  }
}
