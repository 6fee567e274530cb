#pragma once

#include <array>
#include <span>
#include <string_view>

#include "io/pictures/canvas.h"
#include "io/pictures/colour_scale.h"

namespace attnscope {

/// Pixels beside a bar, and on its right for its labels, in the dark style.
constexpr int kBarGap = 24;
constexpr int kBarWidth = 16;
constexpr int kBarTextWidth = 120;

/// Draws the scale into `bar` from its low end at the bottom to its high end at the top, ticks with
/// labels to the right, and the title (what the values are) above, with the power of ten that they
/// count in. A scale of nothing is said to be one instead.
void draw_colour_bar(Canvas& canvas, PixelRect bar, const ColourScale& scale,
                     std::string_view title, const PictureStyle& look, TickNotation notation = {});
/// Of the bars of one picture, so high, and of all its numbers: they count in 10^unit, or are
/// powers of ten where one of the bars needs these even so.
TickNotation bar_notation(std::span<const ColourScale> scales, int height, const PictureStyle& look,
                          int unit = 0);
/// What a scale of nothing has instead of a bar, in two lines: "nothing", "to scale"; of
/// differences "0", "everywhere"; without any value "no", "value".
std::array<std::string_view, 2> words_of_nothing(const ColourScale& scale);
/// Draws a bar of colours that stand for different values in each part of a picture, with "high"
/// and "low" instead of numbers.
void draw_plain_colour_bar(Canvas& canvas, PixelRect bar, Colormap map, std::string_view title,
                           const PictureStyle& look);
/// Pixels that a bar takes on the right of a picture, with the white before it; 0 without legends.
int bar_room(const PictureStyle& look, std::string_view title);

}  // namespace attnscope
