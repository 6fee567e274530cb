#pragma once

#include <span>
#include <string>

#include "cli/run/run_plan.h"
#include "core/base/memory_budget.h"
#include "core/reduce/reduction_stream.h"
#include "core/stream/tile_plan.h"
#include "core/stream/tile_sink.h"

namespace attnscope {

/// Seconds that computing a stream will take on this machine, judged by a few row panels from all
/// over its dearest head that are computed now (well below a second for heads of usual size);
/// writing is not counted.
double expected_seconds(std::span<const HeadTask> tasks, const TileRequest& request,
                        const TilePlan& plan, const TileBackend& backend, MemoryBudget& budget);

/// plan_of() the stream, with seconds where they are worth estimating, which computes a little: for
/// a dry run, and for what is not soon done.
RunPlan forecast_run(std::string command, std::span<const HeadTask> tasks,
                     const TileRequest& request, const TilePlan& plan, const TileBackend& backend,
                     MemoryBudget& budget, bool dry_run);
RunPlan forecast_run(std::string command, std::span<const ReductionJob> jobs,
                     const ReductionPlan& plan, const TileBackend& backend, MemoryBudget& budget,
                     bool dry_run);

}  // namespace attnscope
