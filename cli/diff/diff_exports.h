#pragma once

#include "cli/common/console.h"
#include "cli/diff/diff_options.h"

namespace attnscope {

/// Whether both sides are exports (B perhaps A itself). Throws Error(usage) where only one is.
bool compares_exports(const DiffOptions& options);

/// Heads of one export or of two, entry by entry as they stand in the files. Gives the exit code.
int diff_exports(const DiffOptions& options, const Console& console);

}  // namespace attnscope
