#pragma once

#include <span>

#include "core/tile_backend.h"
#include "core/tile_plan.h"
#include "core/tile_sink.h"

namespace attnscope {

/// A stream of whole rows of float32 weights: a tile is some rows and all keys, one chunk.
struct RowStream {
  TileRequest request;
  TilePlan plan;
};

/// The stream with as many rows at once as `budget_bytes` allow, from 64 down to `least_rows`
/// (powers of two); rather fewer rows than fewer workers, down to 16 rows. Throws Error(resource)
/// naming the smallest budget when there is none. The tasks' keys are all keys.
RowStream plan_row_stream(std::span<const HeadTask> tasks, const TileBackend& backend,
                          int64_t budget_bytes, int64_t least_rows = 1);

}  // namespace attnscope
