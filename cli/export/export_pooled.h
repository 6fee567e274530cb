#pragma once

#include "cli/common/console.h"
#include "cli/export/export_options.h"
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
};

/// Returns the exit code. Throws Error(interrupted) when it was stopped; nothing is kept then.
int export_pooled(ExportPlan plan, const PooledRun& run);

}  // namespace attnscope
