#pragma once

#include "viewer/panels/map/view_transform.h"
#include "viewer/panels/widgets.h"

namespace attnscope {

/// Lines through the entry under the mouse, and its weight beside it; the scene must have a
/// readout.
void draw_crosshair(const Ui& ui, const Scene& scene, const ViewTransform& view);

}  // namespace attnscope
