#pragma once

#include <string_view>

#include "io/pictures/canvas.h"
#include "io/pictures/colour_scale.h"

namespace attnscope {

/// Pixels beside a bar, and on its right for its labels.
constexpr int kBarGap = 24;
constexpr int kBarWidth = 16;
constexpr int kBarTextWidth = 120;

/// Draws the scale into `bar` from its low end at the bottom to its high end at the top, ticks with
/// labels to the right, and the title (what the values are) above. A scale of nothing is said to be
/// one instead.
void draw_colour_bar(Canvas& canvas, PixelRect bar, const ColourScale& scale,
                     std::string_view title);
/// Draws a bar of colours that stand for different values in each part of a picture, with "high"
/// and "low" instead of numbers.
void draw_plain_colour_bar(Canvas& canvas, PixelRect bar, Colormap map, std::string_view title);

}  // namespace attnscope
