#include "io/capture/evictions.h"

namespace attnscope {

std::vector<EvictedKeys> evictions_of(const CallEntry& call) {
  if (!call.mask_fact || call.mask_fact->form != MaskForm::spans) return {};
  const AttentionProblem& problem = *call.problem;
  const auto spans = read_query_spans(*call.mask, problem.num_queries(), problem.num_keys());
  return evicted_keys(spans, problem.query_tokens(), problem.key_tokens());
}

}  // namespace attnscope
