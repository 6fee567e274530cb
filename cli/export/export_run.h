#pragma once

#include "cli/export/export_options.h"

namespace attnscope {

/// `export`, by one process or several that write one file, or one file of shards, together.
/// Returns the exit code.
int run_export(const ExportOptions& options);

}  // namespace attnscope
