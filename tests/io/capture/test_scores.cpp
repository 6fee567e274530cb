// The fact `score`, and the normaliser of linear attention.
#include <cmath>
#include <limits>

#include "io/capture/capture.h"
#include "tests/support/call_file.h"
#include "tests/support/catch.h"
#include "tests/support/helpers.h"
#include "tests/support/temporary_folder.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

constexpr int64_t kTokens = 3, kWidth = 2;

CallFile linear_call(const std::string& score, int version = 2) {
  CallFile call;
  call.tensor("q", "F32", {1, 2, kTokens, kWidth},
              raw(std::vector<float>{1, -2, 3, 4, 5, -6, 7, 8, -9, 10, 11, 12}))
      .tensor("k", "F32", {1, 2, kTokens, kWidth},
              raw(std::vector<float>{1, 2, 3, 4, 5, 6, 1, 0, 0, 1, 1, 1}))
      .version(version);
  return score.empty() ? call : call.fact("score", score);
}

std::string normaliser(std::vector<float> values = {1, 2, 4, 8, 16, 5}) { return raw(values); }

CallFile whole_call() {
  return linear_call("linear:normaliser")
      .tensor("normaliser", "F32", {1, 2, kTokens}, normaliser());
}

std::string refusal(const CallFile& call, ErrorCode code, const std::vector<std::string>& parts,
                    const FactOverrides& overrides = {}) {
  const TemporaryFolder folder;
  call.write(folder.path() / "call.safetensors");
  return refused([&] { (void)Capture::open(folder / "call.safetensors", overrides); }, code, parts);
}

Capture opened(const TemporaryFolder& folder, const CallFile& call) {
  call.write(folder.path() / "call.safetensors");
  return Capture::open(folder / "call.safetensors");
}

std::vector<float> rows_of(const HeadTensor& tensor, int64_t head) {
  std::vector<float> rows(static_cast<size_t>(kTokens * kWidth));
  tensor.read_rows(0, head, {0, kTokens}, reinterpret_cast<std::byte*>(rows.data()));
  return rows;
}

}  // namespace

TEST_CASE("queries are divided by the recorded normaliser") {
  const TemporaryFolder folder;
  const Capture capture = opened(folder, whole_call());
  const CallEntry& call = capture.calls().front();
  CHECK(call.unknown_keys.empty());
  const AttentionProblem& problem = *call.problem;
  CHECK(problem.score() == ScoreFunction::linear_normaliser);
  CHECK(problem.scale(0) == 1);
  CHECK(rows_of(problem.q(), 0) == std::vector<float>{1, -2, 1.5, 2, 1.25, -1.5});
  CHECK(rows_of(problem.q(), 1) ==
        std::vector<float>{0.875f, 1, -0.5625f, 0.625f, 11 / 5.0f, 12 / 5.0f});
  CHECK(rows_of(problem.k(), 0) == std::vector<float>{1, 2, 3, 4, 5, 6});
  REQUIRE(call.undivided);
  CHECK(rows_of(call.undivided->q, 0) == std::vector<float>{1, -2, 3, 4, 5, -6});
  problem.check_finite(0, 1);
}

TEST_CASE("a normaliser of half floats' queries leaves both in float32") {
  const TemporaryFolder folder;
  const Capture capture =
      opened(folder, CallFile()
                         .pair({1, 2, kTokens, kWidth}, {1, 1, kTokens, kWidth}, "BF16")
                         .tensor("normaliser", "F32", {1, 2, kTokens}, normaliser())
                         .fact("score", "linear:normaliser")
                         .version(2));
  const CallEntry& call = capture.calls().front();
  CHECK(call.problem->q().dtype() == DType::f32);
  CHECK(call.problem->k().dtype() == DType::f32);
  CHECK(call.recorded_dtype() == DType::bf16);
}

TEST_CASE("the other scores are facts as well") {
  for (const char* name : {"softmax", "sigmoid", "linear:elu1", "linear:relu"}) {
    const TemporaryFolder folder;
    const Capture capture = opened(folder, linear_call(name));
    CHECK(score_name(capture.calls().front().problem->score()) == name);
    CHECK_FALSE(capture.calls().front().undivided);
  }
}

TEST_CASE("what a normaliser cannot be is told in a line") {
  const auto with = [](const std::string& dtype, std::vector<int64_t> shape,
                       std::string data = "") {
    return linear_call("linear:normaliser")
        .tensor("normaliser", dtype, std::move(shape), std::move(data));
  };
  CHECK(refusal(linear_call("linear:normaliser"), ErrorCode::file,
                {"score", "is linear:normaliser, but there is no tensor normaliser"}) == "");
  CHECK(refusal(with("F32", {1, 2, 4}), ErrorCode::file,
                {"normaliser", "expected f32 [1, 2, 3]", "got f32 [1, 2, 4]"}) == "");
  CHECK(refusal(with("BF16", {1, 2, 3}), ErrorCode::file, {"expected f32", "got bf16"}) == "");
  CHECK(refusal(linear_call("").tensor("normaliser", "F32", {1, 2, 3}), ErrorCode::file,
                {"score", "is softmax, which does not need the tensor normaliser"}) == "");
  CHECK(refusal(linear_call("linear"), ErrorCode::file,
                {"score", "expected one of softmax", "got linear)"}) == "");
  CHECK(refusal(linear_call("sigmoid", 1), ErrorCode::file, {"score"}) == "");
  CHECK(refusal(whole_call().fact("mask", "causal"), ErrorCode::file,
                {"score linear:normaliser takes no mask", "causal"}) == "");
  FactOverrides sigmoid;
  sigmoid.score = ScoreFunction::sigmoid;
  CHECK(refusal(whole_call(), ErrorCode::usage,
                {"--score sigmoid", "was recorded with score linear:normaliser"}, sigmoid) == "");
  FactOverrides bare;
  bare.score = ScoreFunction::linear_normaliser;
  CHECK(refusal(linear_call(""), ErrorCode::file, {"there is no tensor normaliser"}, bare) == "");
}

TEST_CASE("a normaliser of zero, below it, or none is an error with its place") {
  const float nan = std::nanf(""), inf = std::numeric_limits<float>::infinity();
  for (const float wrong : {0.0f, -1.0f, nan, inf}) {
    const TemporaryFolder folder;
    const Capture capture = opened(folder, linear_call("linear:normaliser")
                                               .tensor("normaliser", "F32", {1, 2, kTokens},
                                                       normaliser({1, 2, 4, 8, wrong, 5})));
    const AttentionProblem& problem = *capture.calls().front().problem;
    problem.check_finite(0, 0);
    CHECK(refused([&] { problem.check_finite(0, 1); }, ErrorCode::value,
                  {"normaliser", "batch 0, head 1, token 1 is",
                   "expected a finite number above 0"}) == "");
  }
}
