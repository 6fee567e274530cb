#pragma once

#include <span>
#include <stop_token>

#include "core/base/memory_budget.h"
#include "core/stream/tile_plan.h"
#include "core/stream/tile_sink.h"

namespace attnscope {

/// Seconds that computing a stream will take on this machine, judged by a few row panels from all
/// over its dearest head that are computed now (well below a second for heads of usual size);
/// writing is not counted.
double expected_seconds(std::span<const HeadTask> tasks, const TileRequest& request,
                        const TilePlan& plan, const TileBackend& backend, MemoryBudget& budget);

}  // namespace attnscope
