#pragma once

#include <string>
#include <vector>

#include "io/pictures/colour_scale.h"
#include "io/pictures/picture_page.h"
#include "io/pictures/table_layout.h"

namespace attnscope {

/// A table of numbers: layers × heads, frames × frames …
struct MetricTable {
  PictureText text;
  TableNames names;
  std::string value_name;     ///< above the colour bar
  std::vector<float> values;  ///< [rows, columns]; NaN where there is none: hatched
  ColourChoice colours{Colormap::viridis, ScaleKind::linear, {true, 0, 1}};
  PictureStyle look = {};
};

/// A picture of it: coloured cells with labels, the numbers in them where they have room (28 pixels
/// and more), a colour bar. Borrows the table, which needs no values before they are drawn; throws
/// Error(usage) where sizes do not fit, also that of the page.
class HeatTablePicture {
 public:
  explicit HeatTablePicture(const MetricTable& table);
  int width() const { return width_; }
  int height() const { return height_; }
  Canvas draw() const;
  PixelRect cell(int64_t row, int64_t column) const { return grid_.cell(row, column); }

 private:
  PageSize size_of(const TableLayout& grid) const;
  TableLayout grid_of(int side) const;
  void draw_cells(Canvas& canvas, const ColourScale& scale, TickNotation notation) const;
  const MetricTable& table_;
  const PictureStyle& look_;
  TableLayout grid_;
  int width_ = 0, height_ = 0;
};

/// Diagonal lines: there is no value here.
void draw_hatching(Canvas& canvas, PixelRect rect, const PictureStyle& look);
/// Stripes that run on from cell to cell, which may be single pixels.
void draw_stripes(Canvas& canvas, PixelRect rect, const PictureStyle& look);

}  // namespace attnscope
