#include "io/colour_bar.h"

#include <algorithm>
#include <cmath>

#include "io/picture_style.h"

namespace attnscope {

void draw_colour_bar(Canvas& canvas, PixelRect bar, const ColourScale& scale,
                     std::string_view title) {
  constexpr int kTitleRise = kTextHeight + 8;
  constexpr int kTickLength = 6;
  canvas.text(bar.x, bar.y - kTitleRise, title, kTextScale, kQuietText);
  for (int y = 0; y < bar.height; ++y) {
    const double unit = (bar.height - 0.5 - y) / bar.height;
    canvas.fill({bar.x, bar.y + y, bar.width, 1}, scale.colour(scale.value_at(unit)));
  }
  const int bottom = bar.y + bar.height;
  for (const ScaleTick& tick : scale.ticks(static_cast<double>(kTextHeight + 14) / bar.height)) {
    const int y = bottom - static_cast<int>(std::lround(tick.unit * bar.height));
    canvas.fill({bar.x + bar.width, std::clamp(y, bar.y, bottom - 1), kTickLength, 1}, kQuietText);
    canvas.text(bar.x + bar.width + 2 * kTickLength,
                std::clamp(y - kTextHeight / 2, bar.y, std::max(bar.y, bottom - kTextHeight)),
                tick.label, kTextScale, kText);
  }
}

}  // namespace attnscope
