#include "io/pictures/film/film_frame.h"

#include <algorithm>

#include "io/pictures/metric_table.h"
#include "io/pictures/picture_style.h"

namespace attnscope {
Rgb overlaid(uint8_t grey, double weight, const ColourScale& scale) {
  return tinted(grey, scale.colour(weight), film_cover(scale.unit(weight), 1));
}

void draw_frame_cells(Canvas& canvas, const FrameCells& cells, std::span<const float> weights,
                      const ColourScale& scale, const GreyImage* video, const FilmOver& over,
                      std::span<const uint8_t> absent) {
  if (video != nullptr) {
    const Canvas frame = film_over(resized(*video, cells.width(), cells.height()), weights,
                                   cells.rows, cells.columns, scale, over);
    for (int y = 0; y < frame.height(); ++y) {
      const std::span<const Rgb> row = frame.row(y);
      std::copy(row.begin(), row.end(), canvas.row(cells.y + y).begin() + cells.x);
    }
  }
  size_t at = 0;
  for (int row = 0; row < cells.rows; ++row) {
    for (int column = 0; column < cells.columns; ++column, ++at) {
      if (!absent.empty() && absent[at] != 0) {
        draw_stripes(canvas, cells.at(row, column));
      } else if (video == nullptr) {
        canvas.fill(cells.at(row, column), scale.colour(weights[at]));
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

void draw_match_cell(Canvas& canvas, PixelRect cell) {
  canvas.outline(cell, 3, kBackground);
  canvas.outline(cell, 2, kText);
}

}  // namespace attnscope
