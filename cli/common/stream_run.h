#pragma once

#include <span>
#include <string>

#include "cli/common/capture_options.h"
#include "cli/common/console.h"
#include "cli/common/run_backend.h"
#include "core/base/memory_budget.h"
#include "core/products/map_reductions.h"
#include "core/stream/tile_backend.h"
#include "core/stream/tile_sink.h"

namespace attnscope {

/// What a stream would take; see StreamRun::plan_only.
struct StreamForecast {
  int64_t heads = 0, entries = 0;
  double flops = 0, seconds = 0;
  int64_t memory_bytes = 0, budget_bytes = 0;
  std::string plan;
};

/// The backend and the budget of a command that streams tiles into a sink: planned, with progress,
/// stopped by signals. Not thread-safe.
class StreamRun : public ReductionRunner {
 public:
  /// `title` names the work in the progress display.
  StreamRun(const RunOptions& options, const Console& console, std::string title);

  MemoryBudget& budget() override { return budget_; }
  const TileBackend& backend() const { return *backend_; }
  /// Threads that may call a sink at once.
  int workers() const;

  /// Scans the tasks' tensors for NaN and Inf, then streams. Throws Error(interrupted) when it was
  /// stopped.
  void run(std::span<const HeadTask> tasks, TileSink& sink);

  /// The same for reductions.
  void reduce(std::span<const ReductionJob> jobs, ReductionSink& sink) override;

  /// With dry_run, run() and reduce() compute nothing, and forecast() tells what they would have
  /// taken.
  void plan_only() { plan_only_ = true; }
  bool is_plan_only() const override { return plan_only_; }
  const StreamForecast& forecast() const { return forecast_; }

 private:
  const Console& console_;
  std::string title_;
  int threads_ = 0;
  bool plan_only_ = false;
  RunBackend backend_;
  MemoryBudget budget_;
  StreamForecast forecast_;
};

}  // namespace attnscope
