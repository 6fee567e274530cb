#pragma once

#include "viewer/panels/map/view_transform.h"
#include "viewer/panels/widgets.h"

namespace attnscope {

// Of scenes that have a readout.

/// Dashed lines through the entry under the mouse.
void mark_pointed(const Ui& ui, const Scene& scene, const ViewTransform& view);
/// A frame around it, where it has room for one, and its number beside it.
void draw_crosshair(const Ui& ui, const Scene& scene, const ViewTransform& view);

}  // namespace attnscope
