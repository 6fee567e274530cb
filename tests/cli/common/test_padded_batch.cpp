// Captures of batches padded on the left: queries whose every bias is as low as masks are written.
#include <cfloat>
#include <nlohmann/json.hpp>

#include "io/files/json_types.h"
#include "tests/support/attention_capture.h"
#include "tests/support/catch.h"
#include "tests/support/hdf5_readback.h"
#include "tests/support/program.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

constexpr int64_t kTokens = 40, kPadding = 7;

/// Queries and keys before kPadding are padding, and `bias` hides them. Recorded with every row of
/// the output as torch's kernels return it: the mean of V where no key is left.
AttentionCapture padded_capture(float bias) {
  AttentionCapture call(3, kTokens);
  call.masked_bias = bias;
  for (int64_t i = 0; i < kTokens; ++i) {
    for (int64_t j = 0; j < kTokens; ++j) call.allowed.push_back(i >= kPadding && j >= kPadding);
  }
  return call;
}

CallFile recorded(const AttentionCapture& call) {
  std::vector<float> out;
  std::vector<int64_t> rows;
  for (int64_t i = 0; i < kTokens; ++i) rows.push_back(i);
  for (int64_t head = 0; head < call.heads; ++head) {
    const std::vector<double> map = call.weights(head);
    for (int64_t i = 0; i < kTokens; ++i) {
      for (int64_t c = 0; c < call.d; ++c) {
        double sum = 0;
        for (int64_t j = 0; j < kTokens; ++j) {
          const double weight =
              i < kPadding ? 1.0 / double{kTokens} : map[static_cast<size_t>(i * kTokens + j)];
          sum += weight * call.value(head, j, c);
        }
        out.push_back(static_cast<float>(sum));
      }
    }
  }
  return call.file()
      .tensor("out", "F32", {1, call.heads, kTokens, call.d}, raw(out))
      .tensor("out_rows", "I64", {kTokens}, raw(rows));
}

/// Runs a command that must succeed and narrate no warning.
std::string run_clean(std::vector<std::string> arguments) {
  const ProgramResult result = run_attnscope(arguments);
  INFO(arguments.front() << ": " << result.err);
  REQUIRE(result.exit_code == 0);
  CHECK(result.err.find("warning") == std::string::npos);
  return result.out;
}

}  // namespace

TEST_CASE("queries whose every bias is as low as a mask's are masked rows everywhere") {
  const TemporaryFolder folder;
  const std::string path = folder / "padded.safetensors";
  for (const float bias : {-1e9f, -FLT_MAX, -0x1p22f}) {
    const AttentionCapture call = padded_capture(bias);
    recorded(call).write(path);
    for (const std::string backend : {"cpu", "reference"}) {
      INFO("bias " << bias << ", backend " << backend);
      const auto run = [&](std::vector<std::string> arguments) {
        arguments.insert(arguments.begin() + 1, {path, "--backend", backend});
        return run_clean(arguments);
      };
      const std::string out = folder / "out.h5";
      const std::string group = "/calls/step0000_layer000_all_self/";
      run({"export", "-o", out, "--force", "--dtype", "f32"});
      const DatasetValues weights = read_dataset(out, group + "weights");
      const DatasetValues lse = read_dataset(out, group + "lse");
      for (int64_t head = 0; head < call.heads; ++head) {
        const std::vector<double> expected = call.weights(head);
        for (int64_t i = 0; i < kTokens; ++i) {
          const auto row = static_cast<size_t>(head * kTokens + i);
          CHECK(std::isinf(lse.values[row]) == (i < kPadding));
          for (int64_t j = 0; j < kTokens; ++j) {
            const auto at = static_cast<size_t>(i * kTokens + j);
            CHECK(std::abs(weights.values[static_cast<size_t>(head * kTokens * kTokens) + at] -
                           expected[at]) < 1e-5);
          }
        }
      }
      run({"export", "-o", out, "--force", "--product", "output"});
      CHECK(read_dataset(out, group + "output").values[0] == 0);
      const Json stats = Json::parse(run({"stats", "--json"}));
      CHECK(stats["heads"][1]["masked_rows"] == kPadding);
      run({"query", "--index", "3", "--json", "--cache", "none"});
    }
    CHECK(run_clean({"verify", path}).find("differs") == std::string::npos);
  }
}
