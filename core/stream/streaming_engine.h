#pragma once

#include <span>

#include "core/base/memory_budget.h"
#include "core/stream/stream_control.h"
#include "core/stream/tile_backend.h"
#include "core/stream/tile_plan.h"
#include "core/stream/tile_sink.h"

namespace attnscope {

/// Runs plan → backend → sink: workers bind heads, ahead of their use, compute row panels, and give
/// finished tiles to the sink (a slow sink thereby holds the workers back, those beyond the plan's
/// waiting_workers). As many heads are under way as keep the workers busy. Heads are begun in
/// order; within a head panels go in row order, or backwards where the mask makes the last rows the
/// dearest and the sink does not mind (TileRequest::in_order). One run at a time.
class StreamingEngine {
 public:
  /// Borrowed; both must outlive the engine.
  StreamingEngine(const TileBackend& backend, MemoryBudget& budget)
      : backend_(backend), budget_(budget) {}

  /// Returns true when every tile (of the tasks that control.next_task gave this process) was
  /// consumed and the sink's end() has returned, false when it was stopped. An exception of a
  /// worker, the backend or the sink stops the run and is rethrown.
  bool run(std::span<const HeadTask> tasks, const TilePlan& plan, TileSink& sink,
           const StreamControl& control = {});

 private:
  const TileBackend& backend_;
  MemoryBudget& budget_;
};

}  // namespace attnscope
