#include "viewer/panels/row/film_layout.h"

#include <algorithm>
#include <cmath>

namespace attnscope {
namespace {

constexpr float kLeastWholeCell = 4;

}  // namespace

FilmLayout FilmLayout::fit(const ScreenRect& area, int64_t frames, int64_t height, int64_t width,
                           float label, float gap, float tall, bool whole) {
  FilmLayout best;
  for (int64_t per_line = 1; per_line <= frames; ++per_line) {
    const int64_t lines = (frames + per_line - 1) / per_line;
    const float across = (area.width() - gap * static_cast<float>(per_line - 1)) /
                         static_cast<float>(per_line * width);
    const float down = ((area.height() + gap) / static_cast<float>(lines) - label - gap) /
                       (static_cast<float>(height) * tall);
    float cell = std::min(across, down);
    // Of small cells, whole pixels would leave too much of the pane empty.
    if (whole && cell > kLeastWholeCell) cell = std::floor(cell);
    if (cell > 0 && cell >= best.cell) {
      best = {frames, height, width, per_line, cell, tall, label, gap, area.x0, area.y0};
    }
  }
  return best;
}

ScreenRect FilmLayout::frame(int64_t t) const {
  const float w = cell * static_cast<float>(width);
  const float h = cell * tall * static_cast<float>(height);
  const float x = std::round(x0 + static_cast<float>(t % per_line) * (w + gap));
  const float y = std::round(y0 + static_cast<float>(t / per_line) * (h + label + gap) + label);
  return {x, y, x + w, y + h};
}

ScreenRect FilmLayout::cell_rect(int64_t t, int64_t y, int64_t x) const {
  const ScreenRect f = frame(t);
  const float left = f.x0 + cell * static_cast<float>(x);
  const float top = f.y0 + cell * tall * static_cast<float>(y);
  return {left, top, left + cell, top + cell * tall};
}

float FilmLayout::bottom() const { return frames == 0 ? y0 : frame(frames - 1).y1; }

}  // namespace attnscope
