#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/products/pooled_map.h"
#include "core/reduce/head_metrics.h"
#include "core/reduce/reduction_stream.h"

namespace attnscope {

/// Runs a stream of reductions, or only plans it.
class ReductionRunner {
 public:
  virtual ~ReductionRunner() = default;
  virtual MemoryBudget& budget() = 0;
  /// True where reduce() computes nothing.
  virtual bool is_plan_only() const = 0;
  /// Throws Error(interrupted) when it was stopped.
  virtual void reduce(std::span<const ReductionJob> jobs, ReductionSink& sink) = 0;
};

/// The reductions of whole maps that pictures are drawn from, each by one stream over the tasks.
/// The results have the order of the tasks and do not depend on memory or threads. Tasks have row
/// ranges, no lists. In a run that is only planned the results are empty.

/// The smallest power of two that leaves at most `cells` blocks on the longer side of any task.
int64_t fitting_block(std::span<const HeadTask> tasks, int64_t cells);

/// Maxima and means over block × block weights, from each task's first row and key on. A mean is
/// over the entries that exist, masked ones counting as 0.
std::vector<PooledMap> pooled_maps(std::span<const HeadTask> tasks, int64_t block,
                                   ReductionRunner& run);

/// How much weight the tokens of one part of the sequence put on another: frames, and the text as
/// one more (without a grid: video and text), in the order of the sequence.
struct SegmentMass {
  static constexpr int64_t kText = -1;
  std::vector<int64_t> query_segments, key_segments;  ///< frame, or kText
  /// [query segments, key segments]: mean over the rows that are not fully masked; NaN where there
  /// is none.
  std::vector<double> mass;
  std::vector<int64_t> live_rows;  ///< [query segments]
  bool same_grid = false;          ///< queries and keys are frames of one grid

  double at(size_t query, size_t key) const { return mass[query * key_segments.size() + key]; }
};
/// The parts of a sequence in its order: frames, or SegmentMass::kText.
std::vector<int64_t> mass_segments(const TokenGrid& tokens);
/// Tasks must have all rows and keys.
std::vector<SegmentMass> segment_masses(std::span<const HeadTask> tasks, ReductionRunner& run);

/// Where a head's attention goes, relative to the query.
struct OffsetKernel {
  int64_t frames = 0, height = 0, width = 0;  ///< the grid's T, H, W
  /// [2T − 1, 2H − 1, 2W − 1]: mean over the video query rows of the weight on the key at
  /// (t, y, x) + (i − T + 1, j − H + 1, k − W + 1). Sums to the mass on video keys.
  std::vector<float> mass;
};
/// Tasks must have the rows and keys of the video of one grid.
std::vector<OffsetKernel> offset_kernels(std::span<const HeadTask> tasks, ReductionRunner& run);

/// The numbers of each head, as `stats` prints them. Tasks must have all rows and keys.
std::vector<HeadMetrics> metrics_of_heads(std::span<const HeadTask> tasks, ReductionRunner& run);

}  // namespace attnscope
