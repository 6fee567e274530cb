#include "io/pictures/colour_bar.h"

#include <algorithm>
#include <cmath>

#include "io/pictures/picture_style.h"

namespace attnscope {

namespace {

constexpr int kTickLength = 6;

void draw_title(Canvas& canvas, PixelRect bar, std::string_view title) {
  canvas.text(bar.x, bar.y - kTextHeight - 8, title, kTextHeight, kQuietText);
}

void draw_colours(Canvas& canvas, PixelRect bar, Colormap map, std::string_view title) {
  draw_title(canvas, bar, title);
  for (int y = 0; y < bar.height; ++y) {
    canvas.fill({bar.x, bar.y + y, bar.width, 1},
                colormap_at(map, (bar.height - 0.5 - y) / bar.height));
  }
}

}  // namespace

void draw_colour_bar(Canvas& canvas, PixelRect bar, const ColourScale& scale,
                     std::string_view title) {
  if (scale.is_of_nothing()) {
    draw_title(canvas, bar, title);
    canvas.text(bar.x, bar.y, "nothing", kTextHeight, kText);
    canvas.text(bar.x, bar.y + kTextHeight + kTextGap / 2, "to scale", kTextHeight, kText);
    return;
  }
  draw_colours(canvas, bar, scale.map(), title);
  const int bottom = bar.y + bar.height;
  int free_above = bottom + kTextHeight;
  for (const ScaleTick& tick : scale.ticks(static_cast<double>(kTextHeight + 14) / bar.height)) {
    const int y = bottom - static_cast<int>(std::lround(tick.unit * bar.height));
    const int text_y =
        std::clamp(y - kTextHeight / 2, bar.y, std::max(bar.y, bottom - kTextHeight));
    // Labels at the ends are moved into the bar, where another may stand.
    if (text_y + kTextHeight + 4 > free_above) continue;
    free_above = text_y;
    canvas.fill({bar.x + bar.width, std::clamp(y, bar.y, bottom - 1), kTickLength, 1}, kQuietText);
    canvas.text(bar.x + bar.width + 2 * kTickLength, text_y, tick.label, kTextHeight, kText);
  }
}

void draw_plain_colour_bar(Canvas& canvas, PixelRect bar, Colormap map, std::string_view title) {
  draw_colours(canvas, bar, map, title);
  const int x = bar.x + bar.width + 2 * kTickLength;
  canvas.text(x, bar.y, "high", kTextHeight, kText);
  canvas.text(x, bar.y + bar.height - kTextHeight, "low", kTextHeight, kText);
}

}  // namespace attnscope
