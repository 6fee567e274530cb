#pragma once

#include <functional>
#include <span>

#include "cli/common/console.h"
#include "cli/export/export_options.h"
#include "cli/run/head_run.h"
#include "cli/run/run_steps.h"
#include "cluster/team.h"
#include "core/base/memory_budget.h"
#include "core/reduce/reduction_stream.h"
#include "core/stream/tile_backend.h"
#include "io/capture/capture.h"
#include "io/export/format/export_plan.h"

namespace attnscope {

/// `export --product pooled`, once its plan is made. Borrows.
struct PooledRun {
  const ExportOptions& options;
  const TileBackend& backend;
  const Capture& capture;
  const Console& console;
  Team& team;  ///< that does it together; one process alone
  MemoryBudget& budget;
  bool& begun;  ///< becomes true when the output is
  /// HeadRun::is_only_planned().
  std::function<bool(const HeadRunPlan&)> is_only_planned;
  /// HeadRun::check_inputs().
  std::function<const CheckedRun&(std::span<const ReductionJob>)> check_inputs;
};

/// The heads are shared out. Returns the exit code. Throws Error(interrupted) when it was stopped;
/// nothing is kept then.
int export_pooled(ExportPlan plan, const PooledRun& run);

}  // namespace attnscope
