#include "kernels/cuda/host/plans/split_plan.h"

#include <algorithm>
#include <cstdint>

namespace attnscope::cuda {
namespace {

/// The cost of a block beside its segments (it fetches its rows and fills its pipeline), as a share
/// of a segment's: 1 / kSegmentCost.
constexpr int64_t kSegmentCost = 4;

}  // namespace

SplitPlan plan_splits(int row_blocks, int segments, int multiprocessors, int resident_blocks) {
  const int64_t slots = std::max(1, multiprocessors * std::max(1, resident_blocks));
  const auto splits_of = [&](int length) { return (segments + length - 1) / length; };
  // How long the last multiprocessor works, were blocks dealt out in waves.
  const auto cost_of = [&](int length) {
    const int64_t blocks = int64_t{row_blocks} * splits_of(length);
    return (blocks + slots - 1) / slots * (1 + kSegmentCost * length);
  };
  SplitPlan plan;
  plan.split_segments = std::max(1, segments);
  for (int length = segments - 1; length > 0; --length) {
    if (cost_of(length) < cost_of(plan.split_segments)) plan.split_segments = length;
  }
  plan.splits = splits_of(plan.split_segments);
  plan.blocks = row_blocks * plan.splits;
  return plan;
}

}  // namespace attnscope::cuda
