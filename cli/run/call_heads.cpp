#include "cli/run/call_heads.h"

#include <span>

#include "core/patterns/keys_seen.h"
#include "core/patterns/mask_measurement.h"
#include "core/problem/sampled_rows.h"

namespace attnscope {
namespace {

/// True where the mask that was recorded has a plane a head.
bool has_mask_of_heads(const CallEntry& call) {
  if (call.mask == nullptr) return true;  // Told, which costs nothing to ask.
  const std::span<const int64_t> shape = call.mask->shape();
  return shape.size() > 2 && shape[shape.size() - 3] > 1;
}

}  // namespace

std::map<HeadName, CallHead> heads_by_name(const std::vector<SelectedCall>& calls) {
  std::map<HeadName, CallHead> all;
  for (const SelectedCall& selected : calls) {
    for (const int64_t batch : selected.batch) {
      for (const int64_t head : selected.heads) {
        all[head_name(selected.call->problem->id(), batch, head)] = {selected.call, batch, head};
      }
    }
  }
  return all;
}

std::optional<double> SeenKeys::of(const CallHead& head) {
  const AttentionProblem& problem = *head.call->problem;
  const int64_t plane = has_mask_of_heads(*head.call) ? head.head : 0;
  const auto [there, is_new] = seen_.try_emplace({&problem, head.batch, plane});
  if (is_new) {
    there->second =
        mean_keys_seen(problem, head.batch, plane,
                       sampled_rows(problem.num_queries(), MaskMeasurement::kSampledRows));
  }
  return there->second;
}

int64_t head_count(const std::vector<SelectedCall>& calls) {
  int64_t heads = 0;
  for (const SelectedCall& selected : calls) {
    heads += static_cast<int64_t>(selected.batch.size() * selected.heads.size());
  }
  return heads;
}

}  // namespace attnscope
