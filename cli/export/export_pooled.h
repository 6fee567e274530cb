#pragma once

#include "cli/common/console.h"
#include "cli/export/export_options.h"
#include "cluster/team.h"
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
  Team& team;             ///< that does it together; one process alone
  const RunOptions& how;  ///< by which this process computes
  bool& begun;            ///< becomes true when the output is
};

/// The heads are shared out. Returns the exit code. Throws Error(interrupted) when it was stopped;
/// nothing is kept then.
int export_pooled(ExportPlan plan, const PooledRun& run);

}  // namespace attnscope
