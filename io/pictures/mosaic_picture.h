#pragma once

#include <string>
#include <vector>

#include "core/products/pooled_map.h"
#include "io/pictures/colour_scale.h"
#include "io/pictures/picture_page.h"
#include "io/pictures/table_layout.h"

namespace attnscope {

/// Small maps in rows and columns: layers × heads.
struct MosaicContent {
  PictureText text;  ///< the picture adds a line that says how its cells came about
  TableNames names;
  std::vector<PooledMap> maps;        ///< [rows, columns]; what has no cells, and cells
                                      ///< that are NaN, are hatched
  std::string cell_text;              ///< what a cell of a map is: "mean of 64×64 blocks"
  std::string domain;                 ///< "softmax domain all"
  std::string value_name = "weight";  ///< above the colour bar
  Pool pool = Pool::mean;
  ColourChoice colours;
  bool alike = false;  ///< one range for all maps, else each has its own
  PictureStyle look = {};
};

/// A picture of it with labels and a colour bar. Maps of at most 64×64 cells are enlarged to whole
/// pixels, larger ones drawn a pixel a cell; on a page of a given width as large as it leaves room.
/// Borrows the content, whose maps need no values before they are drawn; throws Error(usage) where
/// sizes do not fit, also that of the page.
class MosaicPicture {
 public:
  explicit MosaicPicture(const MosaicContent& content);
  int width() const { return width_; }
  int height() const { return height_; }
  Canvas draw() const;
  /// Where a cell of one of the maps stands.
  PixelRect cell(int64_t row, int64_t column, int64_t map_row, int64_t map_column) const;

 private:
  PageSize size_of(const TableLayout& grid) const;
  TableLayout grid_of(int pixels) const;
  void draw_map(Canvas& canvas, size_t i, const ColourScale& scale) const;

  const MosaicContent& content_;
  const PictureStyle& look_;
  PictureText text_;
  int pixels_ = 1;  ///< a side of a map's cell
  TableLayout grid_;
  int width_ = 0, height_ = 0;
};

}  // namespace attnscope
