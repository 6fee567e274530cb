#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/base/memory_budget.h"
#include "core/stream/tile_backend.h"
#include "core/stream/tile_sink.h"

namespace attnscope {

/// How a stream of tiles is cut so that it fits a budget. A value.
struct TilePlan {
  int workers = 1;             ///< panels that are computed at once
  int waiting_workers = 0;     ///< further threads, for those that wait in the sink's consume()
  int64_t panel_rows = 0;      ///< rows a worker takes at a time, see TileRequest::chunk_rows
  int64_t segment_chunks = 0;  ///< column chunks held at once by a worker
  bool one_product = true;     ///< norms and entries from one product; else two
  int64_t norm_rows = 0;       ///< norms come before all entries of a head, so many rows at a time
  int64_t bound_heads = 1;     ///< heads kept packed at once, bound by the workers
  int64_t active_chunks = 0;   ///< the most non-empty column chunks of one panel (or segment)

  int64_t bytes_bound = 0;       ///< packed heads, and what binding needs meanwhile
  int64_t bytes_per_worker = 0;  ///< tile buffer, query rows, norms, workspace
  int64_t bytes_total = 0;

  int64_t tiles = 0;    ///< how many tiles the stream delivers
  int64_t entries = 0;  ///< entries that are computed (empty chunks not counted)
  double flops = 0;     ///< of the products Q·Kᵀ, 2·d an entry and product, and P·V

  int threads() const { return workers + waiting_workers; }
  /// For people, one line.
  std::string describe() const;
};

/// Pure: the plan with the most workers that find panels to compute and the fewest products whose
/// bytes_total is at most `room.bytes`. `max_workers` 0 stands for the backend's own number;
/// `waiting_workers` are added to them as far as there is memory.
/// Throws Error(resource) naming the smallest budget that would do when there is none. `tasks` must
/// not be empty.
TilePlan plan_tiles(std::span<const HeadTask> tasks, const TileRequest& request,
                    const TileBackend& backend, const MemoryRoom& room, int max_workers = 0,
                    int waiting_workers = 0);

}  // namespace attnscope
