#include "io/capture/call/call_score.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/problem/normalised_tensor.h"
#include "io/capture/facts/fact_errors.h"
#include "io/tensors/file_tensor.h"

namespace attnscope {
namespace {

std::optional<ScoreFunction> recorded_score(const CallFacts& facts) {
  const auto name = facts.text("score");
  if (!name) return std::nullopt;
  const auto score = parse_score(*name);
  if (score) return score;
  throw bad_fact(facts, "score",
                 "expected softmax, sigmoid, linear:elu1, linear:relu or linear:normaliser (got " +
                     one_line(*name) + ")");
}

ScoreFunction chosen_score(const CallFacts& facts, const FactOverrides& overrides) {
  const auto recorded = recorded_score(facts);
  if (!recorded || overrides.score == ScoreFunction::softmax) {
    return recorded.value_or(overrides.score);
  }
  if (*recorded == overrides.score) return *recorded;
  throw usage_error("--score " + std::string(score_name(overrides.score)) + ": " + facts.name() +
                    " was recorded with score " + std::string(score_name(*recorded)));
}

void check_normaliser(const TensorSource& normaliser, const HeadTensor& q) {
  const std::array<int64_t, 3> expected{q.batch(), q.heads(), q.tokens()};
  const auto shape = normaliser.shape();
  if (normaliser.dtype() == DType::f32 && std::ranges::equal(shape, expected)) return;
  throw file_error(normaliser.name(), "",
                   "expected f32 " +
                       shape_text(std::vector<int64_t>(expected.begin(), expected.end())) +
                       ", a number a query (got " + std::string(dtype_name(normaliser.dtype())) +
                       " " + shape_text(shape) + ")");
}

}  // namespace

CallScore call_score(const CallFacts& facts, const CallTensors& tensors, const HeadTensors& heads,
                     const FactOverrides& overrides) {
  const ScoreFunction score = chosen_score(facts, overrides);
  const std::string name(score_name(score));
  if (!is_signed(score)) {
    if (!tensors.normaliser) return {score, heads};
    throw file_error(facts.name(), "score",
                     "is " + name + ", which does not need the tensor normaliser that is there");
  }
  if (!tensors.normaliser) {
    throw file_error(facts.name(), "score",
                     "is " + name +
                         ", but there is no tensor normaliser, f32 [batch, heads, queries], which "
                         "a file of the capture format 2 states");
  }
  check_normaliser(*tensors.normaliser, heads.q);
  HeadTensors divided = heads;
  divided.q = HeadTensor(normalised_tensor(heads.q, tensors.normaliser), Layout::bhsd);
  // Products are of one dtype.
  if (heads.k.dtype() != DType::f32) {
    divided.k = HeadTensor(normalised_tensor(heads.k, nullptr), Layout::bhsd);
  }
  return {score, divided};
}

}  // namespace attnscope
