#pragma once

#include <functional>
#include <string>

#include "cli/common/capture_options.h"
#include "cli/common/console.h"
#include "core/stream/tile_backend.h"
#include "io/export/format/export_plan.h"
#include "io/export/write/export_sink.h"

namespace attnscope {

/// `export --product pooled`, once its plan is made.
struct PooledRun {
  const RunOptions& run;
  const TileBackend& backend;
  const Capture& capture;
  const Console& console;
  std::string out;
  ExportWriteOptions write;
  bool dry_run = false;
  bool json = false;
};

/// Returns the exit code. Throws Error(interrupted) when it was stopped; nothing is kept then.
int export_pooled(ExportPlan plan, const PooledRun& run);

}  // namespace attnscope
