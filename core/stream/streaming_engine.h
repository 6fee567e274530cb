#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <stop_token>

#include "core/base/memory_budget.h"
#include "core/stream/tile_backend.h"
#include "core/stream/tile_plan.h"
#include "core/stream/tile_sink.h"

namespace attnscope {

struct StreamProgress {
  int64_t tiles_done = 0;
  int64_t tiles_total = 0;
};

struct StreamControl {
  std::stop_token stop;
  /// Called after tiles, from one thread at a time, at most every 50 ms and once at the end.
  std::function<void(const StreamProgress&)> progress;
  /// Called before a tile is computed; true skips it (a resumed export has it already).
  std::function<bool(int64_t task_index, IndexRange rows, IndexRange cols)> skip;
};

/// Runs plan → backend → sink: binds heads ahead of their use, hands row panels to workers, and
/// gives finished tiles to the sink from the worker that computed them (a slow sink thereby holds
/// the workers back). Heads go in order; within a head panels in row order. One run at a time.
class StreamingEngine {
 public:
  /// Borrowed; both must outlive the engine.
  StreamingEngine(const TileBackend& backend, MemoryBudget& budget)
      : backend_(backend), budget_(budget) {}

  /// Returns true when every tile was consumed (the sink's end() has returned), false when it was
  /// stopped. An exception of a worker, the backend or the sink stops the run and is rethrown.
  bool run(std::span<const HeadTask> tasks, const TilePlan& plan, TileSink& sink,
           const StreamControl& control = {});

 private:
  const TileBackend& backend_;
  MemoryBudget& budget_;
};

}  // namespace attnscope
