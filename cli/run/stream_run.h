#pragma once

#include <functional>
#include <optional>
#include <span>
#include <stop_token>
#include <string>

#include "cli/common/capture_options.h"
#include "cli/common/console.h"
#include "cli/run/run_backend.h"
#include "cli/run/run_plan.h"
#include "core/base/memory_budget.h"
#include "core/base/shared_work.h"
#include "core/products/map_reductions.h"
#include "core/stream/tile_backend.h"
#include "core/stream/tile_sink.h"

namespace attnscope {

/// Where a stream runs, and what watches it. Borrowed for the call.
struct StreamJob {
  const Console& console;
  std::string title;  ///< names the work in the progress display
  const TileBackend& backend;
  MemoryBudget& budget;
  std::stop_token stop = {};
  /// Of reductions: those that do the same jobs, so that each is done once by all together. Null:
  /// this process does them all.
  SharedWork* shared = nullptr;
};
/// True where a tile is there already.
using SkipTile = std::function<bool(int64_t task, IndexRange rows, IndexRange cols)>;

/// Streams tiles, with progress. False: it was stopped.
bool run_tiles(const StreamJob& job, std::span<const HeadTask> tasks, const TilePlan& plan,
               TileSink& sink, const SkipTile& skip = {});
/// Streams reductions, with progress. False: it was stopped.
bool run_reductions(const StreamJob& job, std::span<const ReductionJob> jobs,
                    const ReductionPlan& plan, ReductionSink& sink);

/// The backend and the budget of a command that streams tiles into a sink: planned, with progress,
/// stopped by signals. Not thread-safe.
class StreamRun : public ReductionRunner {
 public:
  /// Works in `memory`. `title` names the work in the progress display.
  StreamRun(const RunOptions& options, const MemoryRoom& memory, const Console& console,
            std::string title);

  MemoryBudget& budget() override { return budget_; }
  const TileBackend& backend() const { return *backend_; }
  /// Threads that may call a sink at once.
  int workers() const;

  /// Scans the tasks' tensors for NaN and Inf, then streams. Throws Error(interrupted) when it was
  /// stopped.
  void run(std::span<const HeadTask> tasks, TileSink& sink);

  /// Scans, then streams reductions, as run() does tiles.
  void reduce(std::span<const ReductionJob> jobs, ReductionSink& sink) override;

  /// Streams stop by `stop` from now on, of a caller that watches for signals itself and shows the
  /// progress of all its streams.
  void stand_under(std::stop_token stop) { above_ = std::move(stop); }

  /// With dry_run, run() and reduce() compute nothing, and forecast() tells what they would have
  /// taken.
  void plan_only() { plan_only_ = true; }
  bool is_plan_only() const override { return plan_only_; }
  const RunPlan& forecast() const { return forecast_; }

 private:
  const Console& console_;
  std::string title_;
  int threads_ = 0;
  bool plan_only_ = false;
  std::optional<std::stop_token> above_;
  RunBackend backend_;
  MemoryBudget budget_;
  RunPlan forecast_;
};

}  // namespace attnscope
