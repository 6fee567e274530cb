#pragma once

#include "cli/common/console.h"
#include "cli/render/render_options.h"

namespace attnscope {

/// Draws --picture heatmap of an export of stats: one of its numbers, heads in a table. Returns the
/// exit code. Throws Error(usage) where the file does not hold the number.
int render_stats(const RenderRequest& request, const Console& console);

}  // namespace attnscope
