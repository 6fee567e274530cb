#pragma once

#include "viewer/panels/map/view_transform.h"
#include "viewer/panels/widgets.h"

namespace attnscope {

/// The numbers of single entries of the map that `state` shows in the colours of `scale`, printed
/// in their cells, where those take at least 24 pixels each way and the numbers are known. Nothing
/// on coarser levels.
void draw_cell_numbers(const Ui& ui, const Scene& scene, const ViewState& state,
                       const ColourScale& scale, const ViewTransform& view, int level);

/// `value` in at most `characters` characters (a sign included), as precise as that allows; empty
/// where nothing fits.
std::string number_within(double value, int characters);

}  // namespace attnscope
