#include "kernels/cuda/split_plan.h"

#include <algorithm>

namespace attnscope::cuda {

SplitPlan plan_splits(int row_tiles, int segments, int multiprocessors, int resident_blocks) {
  const int wanted = std::max(1, multiprocessors * std::max(1, resident_blocks));
  const auto splits_of = [&](int length) { return (segments + length - 1) / length; };
  SplitPlan plan;
  // Splits of equal length first: the next shorter one is what gives more of them.
  for (int length = segments; length > 1; --length) {
    if (row_tiles * splits_of(length) >= wanted) {
      plan.split_segments = length;
      break;
    }
  }
  plan.splits = splits_of(plan.split_segments);
  plan.blocks = row_tiles * plan.splits;
  return plan;
}

}  // namespace attnscope::cuda
