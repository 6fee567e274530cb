#include "io/pictures/colour_bar.h"

#include <algorithm>
#include <cmath>

#include "core/base/number_words.h"
#include "io/pictures/picture_page.h"
#include "io/pictures/text/text_ink.h"

namespace attnscope {

namespace {

constexpr int kTickLength = 6;

void draw_title(Canvas& canvas, PixelRect bar, std::string_view title, const PictureStyle& look,
                int unit = 0) {
  int y = bar.y - look.text_height - look.px(8);
  if (unit != 0) {
    canvas.text(bar.x, y, "×" + power_of_ten(unit), look.text_height, look.quiet_text);
    y -= line_rise(look);
  }
  canvas.text(bar.x, y, title, look.text_height, look.quiet_text);
}

/// Between ticks, of the bar's height.
double tick_gap(int height, const PictureStyle& look) {
  return static_cast<double>(look.text_height + look.px(14)) / height;
}

void draw_colours(Canvas& canvas, PixelRect bar, Colormap map) {
  for (int y = 0; y < bar.height; ++y) {
    canvas.fill({bar.x, bar.y + y, bar.width, 1},
                colormap_at(map, (bar.height - 0.5 - y) / bar.height));
  }
}

}  // namespace

void draw_colour_bar(Canvas& canvas, PixelRect bar, const ColourScale& scale,
                     std::string_view title, const PictureStyle& look, TickNotation notation) {
  draw_title(canvas, bar, title, look, scale.is_of_nothing() ? 0 : notation.unit);
  if (scale.is_of_nothing()) {
    int y = bar.y;
    for (const std::string_view line : words_of_nothing(scale)) {
      canvas.text(bar.x, y, line, look.text_height, look.text);
      y += look.text_height + look.text_gap / 2;
    }
    return;
  }
  draw_colours(canvas, bar, scale.map());
  const int bottom = bar.y + bar.height;
  int free_above = bottom + look.text_height;
  for (const ScaleTick& tick : scale.ticks(tick_gap(bar.height, look), notation)) {
    const int y = bottom - static_cast<int>(std::lround(tick.unit * bar.height));
    const int text_y =
        std::clamp(y - look.text_height / 2, bar.y, std::max(bar.y, bottom - look.text_height));
    // Labels at the ends are moved into the bar, where another may stand.
    if (text_y + look.text_height + look.px(4) > free_above) continue;
    free_above = text_y;
    canvas.fill(
        {bar.x + bar.width, std::clamp(y, bar.y, bottom - 1), look.px(kTickLength), look.px(1)},
        look.quiet_text);
    canvas.text(bar.x + bar.width + 2 * look.px(kTickLength), text_y, tick.label, look.text_height,
                look.text);
  }
}

void draw_plain_colour_bar(Canvas& canvas, PixelRect bar, Colormap map, std::string_view title,
                           const PictureStyle& look) {
  draw_title(canvas, bar, title, look);
  draw_colours(canvas, bar, map);
  const int x = bar.x + bar.width + 2 * look.px(kTickLength);
  canvas.text(x, bar.y, "high", look.text_height, look.text);
  canvas.text(x, bar.y + bar.height - look.text_height, "low", look.text_height, look.text);
}

TickNotation bar_notation(std::span<const ColourScale> scales, int height, const PictureStyle& look,
                          int unit) {
  const bool powers = std::any_of(scales.begin(), scales.end(), [&](const ColourScale& scale) {
    return scale.needs_powers(tick_gap(height, look), unit);
  });
  return powers ? TickNotation{.powers = true} : TickNotation{.unit = unit};
}

std::array<std::string_view, 2> words_of_nothing(const ColourScale& scale) {
  if (!scale.has_values()) return {"no", "value"};
  if (scale.map() == Colormap::coolwarm) return {"0", "everywhere"};
  return {"nothing", "to scale"};
}

int bar_room(const PictureStyle& look, std::string_view title) {
  if (!look.legend) return 0;
  if (look.page_width == 0) return look.px(kBarGap + kBarWidth + kBarTextWidth);
  // A page of a given width has none to spare.
  const int labels =
      look.px(kBarWidth) + 2 * look.px(kTickLength) + text_width("0.00×10⁻⁵", look.text_height);
  return look.px(kBarGap) + std::max(labels, text_width(title, look.text_height));
}

}  // namespace attnscope
