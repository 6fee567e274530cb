#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/memory_budget.h"
#include "core/reduce/head_totals.h"
#include "core/stream/streaming_engine.h"

namespace attnscope {

/// One head and what is to be taken from it. Its task must want all keys, unless only blocks are
/// taken: those are cut out of the task's keys. Blocks need a range of rows, no list.
struct ReductionJob {
  HeadTask task;
  ReductionRequest request;
};

/// Takes what a stream of reductions yields. Borrowed arguments are valid during the call only.
class ReductionSink {
 public:
  virtual ~ReductionSink() = default;
  /// A row of blocks: the largest weight and the sum of the weights of each block. Called
  /// concurrently, in no particular order.
  virtual void block_row(int64_t job, int64_t row, std::span<const float> max,
                         std::span<const double> sum) {
    (void)job, (void)row, (void)max, (void)sum;
  }
  /// The rows of a panel that begins at position `first` of the job's rows. Called concurrently, in
  /// no particular order.
  virtual void panel(int64_t job, int64_t first, const PanelReduction& panel) {
    (void)job, (void)first, (void)panel;
  }
  /// All panels of the job are done; one call at a time, jobs in no particular order.
  virtual void head(int64_t job, const HeadTotals& totals) = 0;
};

/// How a stream of reductions is cut. A value.
struct ReductionPlan {
  int workers = 1;
  int64_t panel_rows = 0;
  int64_t call_rows = 0;  ///< rows that a worker's workspace holds at a time
  int64_t bound_heads = 1;
  int64_t bytes_per_worker = 0;
  int64_t bytes_total = 0;
  int64_t panels = 0;
  int64_t rows = 0;
  double entries = 0;
  double flops = 0;

  /// For people, one line.
  std::string describe() const;
};

/// Pure. Throws Error(resource) naming the smallest budget that would do when there is none. All
/// jobs must have the same block. `max_workers` 0 stands for the backend's own number.
/// `sink_head_bytes` is what the sink holds of a head from its first panel to its last.
ReductionPlan plan_reductions(std::span<const ReductionJob> jobs, const TileBackend& backend,
                              const MemoryRoom& room, int max_workers = 0,
                              int64_t sink_head_bytes = 0);

/// Runs reductions: one product Q·Kᵀ a head, whose weights are reduced where they lie. As many
/// heads are under way as keep the workers busy. Results do not depend on the plan. One run at a
/// time.
class ReductionStream {
 public:
  /// Borrowed; both must outlive the stream.
  ReductionStream(const TileBackend& backend, MemoryBudget& budget)
      : backend_(backend), budget_(budget) {}

  /// Returns true when every job is done, false when it was stopped. An exception of a worker, the
  /// backend or the sink stops the run and is rethrown. Progress counts panels; control.skip is not
  /// used.
  bool run(std::span<const ReductionJob> jobs, const ReductionPlan& plan, ReductionSink& sink,
           const StreamControl& control = {});

  /// Seconds that run() will take on this machine, judged by a few rows of the dearest head that
  /// are reduced now.
  double expected_seconds(std::span<const ReductionJob> jobs, const ReductionPlan& plan);

 private:
  const TileBackend& backend_;
  MemoryBudget& budget_;
};

}  // namespace attnscope
