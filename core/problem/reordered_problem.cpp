#include "core/problem/reordered_problem.h"

#include "core/mask/reordered_mask.h"
#include "core/tensor/gathered_tensor.h"

namespace attnscope {
namespace {

HeadTensor gathered(const HeadTensor& tensor, const PlaceOrder& order) {
  if (order.is_identity()) return tensor;
  return {gathered_tensor(tensor, order), Layout::bhsd};
}

}  // namespace

AttentionProblem reordered_problem(const AttentionProblem& problem, const MapPlaces& places) {
  AttentionProblem::Parts parts;
  parts.q = gathered(problem.q(), places.rows);
  parts.k = gathered(problem.k(), places.keys);
  parts.scale = problem.scales();
  parts.score = problem.score();
  parts.mask = reordered_mask(problem.mask(), places);
  parts.sinks = problem.sinks();
  if (!places.rows.is_identity()) {
    const std::span<const int32_t> tokens = places.rows.tokens();
    parts.sinks = parts.sinks.of_queries(std::vector<int64_t>(tokens.begin(), tokens.end()));
  }
  parts.id = problem.id();
  parts.name = problem.name();
  return AttentionProblem::make(std::move(parts));
}

}  // namespace attnscope
