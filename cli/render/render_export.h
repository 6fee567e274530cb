#pragma once

#include "cli/common/console.h"
#include "cli/render/render_options.h"

namespace attnscope {

/// Draws --picture matrix of one head, or mosaic of all selected ones, of an export of weights,
/// logits or blocks, whatever part of it is there: cells of missing tiles are hatched. Returns the
/// exit code. Throws Error(usage) for what an export cannot show.
int render_export(const RenderRequest& request, PictureKind kind, const Console& console);

}  // namespace attnscope
