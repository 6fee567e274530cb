// The memory that the calls of a large capture take counts against --memory.
#include <nlohmann/json.hpp>

#include "io/files/json_types.h"
#include "tests/support/call_file.h"
#include "tests/support/catch.h"
#include "tests/support/program.h"
#include "tests/support/sanitized.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

constexpr int64_t kMiB = 1 << 20;

/// A capture of so many calls of 8 tokens.
std::string write_calls(const TemporaryFolder& folder, int calls) {
  const std::filesystem::path capture = folder / std::to_string(calls);
  std::filesystem::create_directory(capture);
  std::string list;
  for (int i = 0; i < calls; ++i) {
    const std::string name = std::to_string(i) + ".safetensors";
    CallFile()
        .pair({1, 1, 8, 4}, {1, 1, 8, 4})
        .fact("step", std::to_string(i / 40))
        .fact("layer", std::to_string(i % 40))
        .fact("model", "some/model")
        .fact("prompt", "a red circle")
        .write(capture / name);
    list += (i > 0 ? "," : "") + (R"({"file":")" + name + "\"}");
  }
  write_bytes(capture / "capture.json",
              R"({"format":"attnscope-capture/1","calls":[)" + list + "]}");
  return capture;
}

ProgramResult plan(const std::string& capture, const std::string& memory) {
  return run_attnscope({"query", capture, "--index", "3", "--steps", "0", "--layers", "0",
                        "--dry-run", "--json", "--quiet", "--memory", memory});
}

}  // namespace

TEST_CASE("the calls of a large capture count against the memory, those of a small one do not") {
  const TemporaryFolder folder;
  const std::string few = write_calls(folder, 40), many = write_calls(folder, 4000);
  const auto budget = [&](const std::string& capture) {
    const ProgramResult result = plan(capture, "64MiB");
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    return std::pair(Json::parse(result.out)["budget_bytes"].get<int64_t>(), result.peak_bytes);
  };
  const auto [all, peak_of_few] = budget(few);
  const auto [left, peak_of_many] = budget(many);
  CHECK(all == 64 * kMiB);
  CHECK(left < 64 * kMiB - 12 * kMiB);
  CHECK(left > 64 * kMiB - 32 * kMiB);
  // The estimate is about what they take: without the few MiB that are free, and a sanitizer's own.
  if (!sanitized()) CHECK(peak_of_many - peak_of_few < 64 * kMiB - left + 8 * kMiB);
  const ProgramResult refused = plan(many, "12MiB");
  CHECK(refused.exit_code == 1);
  CHECK(refused.err.find("--memory 12.00 MiB: the 4000 calls of ") != std::string::npos);
  for (const char* command : {"stats", "mask"}) {
    INFO(command);
    std::vector<std::string> arguments{command, many, "--memory", "12MiB", "--quiet"};
    if (std::string(command) == "mask") arguments.insert(arguments.end(), {"--mask", "causal"});
    const ProgramResult other = run_attnscope(arguments);
    INFO(other.err);
    CHECK(other.exit_code == 1);
    CHECK(other.err.find("calls") != std::string::npos);
  }
  CHECK(plan(few, "12MiB").exit_code == 0);
}
