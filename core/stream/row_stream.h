#pragma once

#include <span>

#include "core/base/memory_budget.h"
#include "core/stream/tile_backend.h"
#include "core/stream/tile_plan.h"
#include "core/stream/tile_sink.h"

namespace attnscope {

/// A stream of whole rows of float32 weights: a tile is some rows and all keys, one chunk.
struct RowStream {
  TileRequest request;
  TilePlan plan;
};

/// The stream with as many rows at once as the budget allows beside `beside_bytes` that the caller
/// is going to reserve, from 64 down to `least_rows` (powers of two); rather fewer rows than fewer
/// workers, down to 16 rows. Throws Error(resource) naming what it needs when there is none. The
/// tasks' keys are all keys.
RowStream plan_row_stream(std::span<const HeadTask> tasks, const TileBackend& backend,
                          const MemoryBudget& budget, int64_t beside_bytes = 0,
                          int64_t least_rows = 1);
/// Bytes that such a stream takes at least, with the `beside_bytes`.
int64_t least_row_stream_bytes(std::span<const HeadTask> tasks, const TileBackend& backend,
                               int64_t beside_bytes);

}  // namespace attnscope
