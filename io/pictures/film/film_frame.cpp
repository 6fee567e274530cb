#include "io/pictures/film/film_frame.h"

#include <algorithm>

#include "io/pictures/metric_table.h"

namespace attnscope {
namespace {

/// Beside an outline: it stays visible on bright cells.
constexpr Rgb kOutlineRim{0x10, 0x12, 0x14};
constexpr Rgb kQueryOutline{0x4a, 0xa8, 0xff};
constexpr Rgb kMatchOutline{0xd7, 0xdd, 0xe3};

}  // namespace

Rgb overlaid(uint8_t grey, double weight, const ColourScale& scale) {
  return tinted(grey, scale.colour(weight), film_cover(scale.unit(weight), 1));
}

void draw_frame_cells(Canvas& canvas, const FrameCells& cells, std::span<const float> weights,
                      const ColourScale& scale, const GreyImage* video, const FilmOver& over,
                      std::span<const uint8_t> absent, const PictureStyle& look) {
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
        draw_stripes(canvas, cells.at(row, column), look);
      } else if (video == nullptr) {
        canvas.fill(cells.at(row, column), scale.colour(weights[at]));
      }
    }
  }
}

void draw_query_cell(Canvas& canvas, PixelRect cell, const PictureStyle& look) {
  const int thickness = look.px(cell.width >= look.px(12) ? 3 : 2);
  canvas.outline(cell, thickness + look.px(1), kOutlineRim);
  canvas.outline(cell, thickness, kQueryOutline);
}

void draw_match_cell(Canvas& canvas, PixelRect cell, const PictureStyle& look) {
  canvas.outline(cell, look.px(2) + look.px(1), kOutlineRim);
  canvas.outline(cell, look.px(2), kMatchOutline);
}

}  // namespace attnscope
