// Outputs of kernels that approximate by design: a measurement, no alarm.
#include <cmath>
#include <nlohmann/json.hpp>

#include "io/files/json_types.h"
#include "tests/support/catch.h"
#include "tests/support/program.h"
#include "tests/support/reference_call.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

constexpr int64_t kHeads = 3, kTokens = 20, kWidth = 8;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// A call that recorded, for three rows of each head, its exact outputs times 1 + error(head).
void write_call(const std::string& path, const std::vector<double>& error,
                const std::string& approximation) {
  ReferenceCall call({1, kHeads, kHeads, kTokens, kTokens, kWidth}, 12);
  const std::vector<int64_t> rows{0, 7, 19};
  std::vector<float> out;
  for (int64_t head = 0; head < kHeads; ++head) {
    for (const int64_t row : rows) {
      for (const double value : call.output(0, head, row)) {
        out.push_back(static_cast<float>(value * (1 + error[static_cast<size_t>(head)])));
      }
    }
  }
  call.tensor("out", "F32", {1, kHeads, 3, kWidth}, raw(out))
      .tensor("out_rows", "I64", {3}, raw(rows));
  if (!approximation.empty()) call.version(2).fact("approximation", approximation);
  call.write(path);
}

}  // namespace

TEST_CASE("a kernel that approximates is measured head by head") {
  const TemporaryFolder folder;
  const std::string path = folder / "call.safetensors";
  const std::vector<double> error{0, 0.1, 0.2};
  write_call(path, error, "sage int8");
  const auto text = run_attnscope({"verify", path});
  INFO(text.out << text.err);
  CHECK(text.exit_code == 0);
  CHECK(contains(text.out, "approximates: self: sage int8: mean error "));
  CHECK(contains(text.out, "worst: batch item 0, head 2"));
  CHECK_FALSE(contains(text.out, "differs"));
  const Json json = Json::parse(run_attnscope({"verify", path, "--json"}).out);
  CHECK(json["good"] == true);
  const Json& call = json["calls"][0];
  CHECK(call["verdict"] == "approximates");
  CHECK(call["approximation"] == "sage int8");
  REQUIRE(call["head_errors"].size() == kHeads);
  for (size_t head = 0; head < kHeads; ++head) {
    const auto mean = call["head_errors"][head]["mean"].get<double>();
    const auto worst = call["head_errors"][head]["worst"].get<double>();
    INFO("head " << head << ": " << mean);
    CHECK(call["head_errors"][head]["head"] == head);
    // The measure's denominator has a second term, so it is below the factor.
    CHECK(mean <= error[head] + 1e-4);
    CHECK(mean >= 0.3 * error[head] - 1e-4);
    CHECK(worst >= mean);
  }
  // Nothing is said on opening either, and everything works on it.
  const auto stats = run_attnscope({"stats", path});
  CHECK(stats.exit_code == 0);
  CHECK_FALSE(contains(stats.err, "not agree"));
  CHECK(contains(run_attnscope({"info", path, "--no-scan"}).out, "sage int8"));
}

TEST_CASE("the same outputs without the fact are an alarm, and so are ones that are far off") {
  const TemporaryFolder folder;
  const std::string path = folder / "call.safetensors";
  write_call(path, {0, 0.1, 0.2}, "");
  const auto plain = run_attnscope({"verify", path});
  CHECK(plain.exit_code == 3);
  CHECK(contains(plain.out, "differs: "));
  write_call(path, {0, 0.1, 30}, "sage int8");
  const auto far = run_attnscope({"verify", path});
  CHECK(far.exit_code == 3);
  CHECK(contains(far.out, "differs: "));
  write_call(path, {0, 0, 0}, "sage int8");
  const auto exact = run_attnscope({"verify", path});
  CHECK(exact.exit_code == 0);
  CHECK(contains(exact.out, "agrees: 1 of 1 calls"));
}
