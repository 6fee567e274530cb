#pragma once

#include <string>
#include <vector>

#include "io/pictures/canvas.h"
#include "io/pictures/matrix_axis.h"

namespace attnscope {

/// The names of a table's rows and columns.
struct TableNames {
  std::string row_name, column_name;  ///< "layer", "head"
  std::vector<std::string> rows, columns;
};

/// Equal cells in rows and columns with labels above and to the left, of which as many are drawn
/// as there is room for. Immutable; borrows the names and the style.
class TableLayout {
 public:
  /// The table's labels begin at (left, top).
  TableLayout(const TableNames& names, const PictureStyle& look, int left, int top, int cell_width,
              int cell_height, int gap);

  PixelRect cell(int64_t row, int64_t column) const;
  /// Around all cells.
  PixelRect cells() const;
  void draw_labels(Canvas& canvas) const;

 private:
  const TableNames* names_;
  const PictureStyle* look_;
  int corner_x_ = 0, corner_y_ = 0;
  int label_width_ = 0;
  int left_ = 0, top_ = 0;  ///< of the first cell
  int cell_width_ = 1, cell_height_ = 1, gap_ = 0;
};

}  // namespace attnscope
