#include "io/pictures/film_frame.h"

#include <algorithm>
#include <cmath>

#include "io/pictures/film_over.h"
#include "io/pictures/metric_table.h"
#include "io/pictures/picture_style.h"

namespace attnscope {
Rgb overlaid(uint8_t grey, double weight, const ColourScale& scale) {
  const double cover = film_cover(scale.unit(weight), 1);
  const Rgb colour = scale.colour(weight);
  const auto mixed = [&](uint8_t channel) {
    return static_cast<uint8_t>(std::lround(grey + cover * (channel - grey)));
  };
  return {mixed(colour.r), mixed(colour.g), mixed(colour.b)};
}

void draw_frame_cells(Canvas& canvas, const FrameCells& cells, std::span<const float> weights,
                      const ColourScale& scale, const GreyImage* video,
                      std::span<const uint8_t> absent) {
  GreyImage under;
  if (video != nullptr) under = resized(*video, cells.width(), cells.height());
  size_t at = 0;
  for (int row = 0; row < cells.rows; ++row) {
    for (int column = 0; column < cells.columns; ++column) {
      const bool hatched = !absent.empty() && absent[at] != 0;
      const float weight = weights[at++];
      const PixelRect rect = cells.at(row, column);
      if (hatched) {
        draw_stripes(canvas, rect);
        continue;
      }
      if (video == nullptr) {
        canvas.fill(rect, scale.colour(weight));
        continue;
      }
      for (int y = rect.y; y < rect.y + rect.height; ++y) {
        for (int x = rect.x; x < rect.x + rect.width; ++x) {
          const auto pixel = static_cast<size_t>(y - cells.y) * static_cast<size_t>(under.width) +
                             static_cast<size_t>(x - cells.x);
          canvas.fill({x, y, 1, 1}, overlaid(under.pixels[pixel], weight, scale));
        }
      }
    }
  }
}

void draw_query_cell(Canvas& canvas, PixelRect cell) {
  const int thickness = cell.width >= 12 ? 3 : 2;
  // The dark rim keeps the outline visible on bright cells.
  canvas.outline(cell, thickness + 1, kBackground);
  canvas.outline(cell, thickness, kQuery);
}

}  // namespace attnscope
