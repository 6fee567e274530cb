#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/problem/token_grid.h"
#include "core/products/pooled_map.h"
#include "io/pictures/canvas.h"
#include "io/pictures/colour_scale.h"
#include "io/pictures/matrix_axis.h"
#include "io/pictures/picture_page.h"

namespace attnscope {

/// The content of a picture of one attention map.
struct MatrixContent {
  PooledMap map;
  TokenGrid query_tokens, key_tokens;
  IndexRange rows, cols;  ///< the tokens that the map covers
  Pool pool = Pool::max;
  ColourChoice colours;
  /// Title and lines; the picture adds one that says how its cells came about, and `domain`.
  PictureText text;
  std::string domain;  ///< "softmax domain all"
  std::string value_name = "weight";
  std::string cell_text = {};  ///< what a cell is; empty: as pooling_text() says it
  /// [rows, cols] cells of which nothing is known: hatched, and said. Empty: none.
  std::vector<uint8_t> missing = {};
  PictureStyle look = {};
};

/// "max of 16×16 blocks", "single weights" where a block is one weight.
std::string pooling_text(const PooledMap& map, Pool pool);

/// A pooled attention matrix: queries down, keys to the right; frame lines; names of frames and
/// text, token numbers, bands that mark the text, a colour bar, a legend. Cells are enlarged to
/// whole pixels (about 1100 for the longer side, or as the page's size leaves room) and never
/// shrunk. Borrows the content, which needs no values before they are drawn.
class MatrixPicture {
 public:
  /// Throws Error(usage) where sizes do not fit, also that of the page.
  explicit MatrixPicture(const MatrixContent& content);
  int width() const { return width_; }
  int height() const { return height_; }
  /// Throws Error(usage) where there are not as many values as cells.
  Canvas draw() const;
  /// Where a cell stands.
  PixelRect cell(int64_t row, int64_t col) const;
  const MatrixAxis& query_axis() const { return rows_; }
  const MatrixAxis& key_axis() const { return cols_; }

 private:
  PageSize lay_out(int cell);
  void draw_cells(Canvas& canvas, const ColourScale& scale) const;
  void draw_bands(Canvas& canvas) const;
  void draw_labels(Canvas& canvas) const;

  const MatrixContent& content_;
  const PictureStyle& look_;
  PictureText text_;
  MatrixAxis rows_, cols_;
  int name_width_ = 0, number_width_ = 0;  ///< of the columns left of the map
  int left_ = 0, top_ = 0;                 ///< of the map
  int width_ = 0, height_ = 0;
};

}  // namespace attnscope
