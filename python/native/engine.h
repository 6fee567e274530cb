#pragma once

#include <cstdint>
#include <memory>

#include "cli/common/capture_options.h"
#include "cli/run/run_backend.h"
#include "core/products/map_reductions.h"
#include "core/stream/number_range.h"
#include "core/stream/tile_backend.h"
#include "core/stream/tile_plan.h"
#include "core/stream/tile_sink.h"
#include "python/native/watched_run.h"

namespace attnscope {

/// How work is computed: what the command line's --memory, --threads, --backend, --vram and --tf32
/// say. Immutable; thread-safe. Every piece of work has a budget of its own.
class Engine {
 public:
  /// Throws Error(usage) or Error(unavailable) as the command line does.
  explicit Engine(RunOptions options);

  const RunOptions& options() const { return options_; }
  const TileBackend& backend() const { return *backend_; }
  /// Bytes that a piece of work may take, now.
  int64_t memory() const { return memory_limit(options_); }
  /// Threads that may call a sink at once.
  int workers() const { return options_.threads > 0 ? options_.threads : backend_->workers(); }

 private:
  RunOptions options_;
  RunBackend backend_;
};

/// One piece of work: streams in a budget, watched. Not thread-safe.
class EngineRun : public ReductionRunner {
 public:
  /// Borrows both.
  EngineRun(const Engine& engine, RunWatch& watch);

  const TileBackend& backend() const { return engine_.backend(); }
  int workers() const { return engine_.workers(); }
  RunWatch& watch() { return watch_; }
  MemoryBudget& budget() override { return budget_; }
  bool is_plan_only() const override { return false; }

  /// Scans q and k of the tasks, and v `with_values`, for NaN and Inf. Throws Error(value).
  std::vector<TaskMagnitudes> check_values(std::span<const HeadTask> tasks,
                                           bool with_values = false);
  /// These throw Error(interrupted) when they were stopped.
  void run(std::span<const HeadTask> tasks, TileSink& sink);
  void reduce(std::span<const ReductionJob> jobs, ReductionSink& sink) override;
  /// As above, for a sink that holds `sink_head_bytes` of a head under way.
  void reduce(std::span<const ReductionJob> jobs, ReductionSink& sink, int64_t sink_head_bytes);

 private:
  StreamControl control();

  const Engine& engine_;
  RunWatch& watch_;
  MemoryBudget budget_;
};

/// The Error(interrupted) that a stopped run throws.
Error stopped_error();

}  // namespace attnscope
