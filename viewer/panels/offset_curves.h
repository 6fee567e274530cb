#pragma once

#include "viewer/panels/widgets.h"
#include "viewer/view/maps/head_tracks.h"

namespace attnscope {

/// The mean weight of a head by the offset of the key from the query in time, in y and in x, as
/// three curves below each other, on one logarithmic axis.
void draw_offset_curves(const Ui& ui, const ScreenRect& rect, const HeadTracks& tracks);
/// "2.41 × the mean at its dt": the entry under the mouse, observed over expected. Empty where the
/// curves are not shown or have no number for it.
std::string offset_readout(const Scene& scene);
/// Less width has no room for them.
constexpr float kLeastCurves = 110;

}  // namespace attnscope
