#pragma once

#include "viewer/panels/map/view_transform.h"
#include "viewer/panels/widgets.h"

namespace attnscope {

/// Dashed lines through the entry under the mouse, where its row or column is not the picked one,
/// and its weight beside it; the scene must have a readout.
void draw_crosshair(const Ui& ui, const Scene& scene, const ViewTransform& view);

}  // namespace attnscope
