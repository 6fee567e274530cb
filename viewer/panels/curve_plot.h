#pragma once

#include <functional>

#include "viewer/panels/widgets.h"
#include "viewer/view/heads/timeline.h"

namespace attnscope {

/// Draws a curve into `plot`, its ends' numbers to the left of it: dots of numbers from all rows
/// are filled, of sampled ones hollow; gaps where there is none. `place` is the x of a point.
void draw_curve(const Ui& ui, const ScreenRect& plot, const HeadCurve& curve,
                const std::function<float(size_t)>& place);
/// "3.42": as short as it can be told from its neighbours.
std::string curve_number(double number);
/// "from 64 rows, 3 of 50 there": how far a curve is to be believed.
std::string curve_state(const HeadCurve& curve);

}  // namespace attnscope
