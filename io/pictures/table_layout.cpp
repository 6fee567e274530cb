#include "io/pictures/table_layout.h"

#include <algorithm>

#include "io/pictures/picture_style.h"
#include "io/pictures/text/text_ink.h"

namespace attnscope {
namespace {

constexpr int kNameGap = 12;
constexpr int kNameHeight = kTextHeight + 10;

}  // namespace

TableLayout::TableLayout(const TableNames& names, int left, int top, int cell_width,
                         int cell_height, int gap)
    : names_(names),
      corner_x_(left),
      corner_y_(top),
      cell_width_(cell_width),
      cell_height_(cell_height),
      gap_(gap) {
  label_width_ = text_width(names.row_name, kTextHeight);
  for (const std::string& name : names.rows) {
    label_width_ = std::max(label_width_, text_width(name, kTextHeight));
  }
  left_ = left + label_width_ + kNameGap;
  top_ = top + 2 * kNameHeight;
}

PixelRect TableLayout::cell(int64_t row, int64_t column) const {
  return {left_ + static_cast<int>(column) * (cell_width_ + gap_),
          top_ + static_cast<int>(row) * (cell_height_ + gap_), cell_width_, cell_height_};
}

PixelRect TableLayout::cells() const {
  const auto rows = static_cast<int>(names_.rows.size());
  const auto columns = static_cast<int>(names_.columns.size());
  return {left_, top_, columns * (cell_width_ + gap_) - gap_, rows * (cell_height_ + gap_) - gap_};
}

void TableLayout::draw_labels(Canvas& canvas) const {
  canvas.text(left_, corner_y_, names_.column_name, kTextHeight, kQuietText);
  const int row_name_x = left_ - kNameGap - text_width(names_.row_name, kTextHeight);
  canvas.text(row_name_x, corner_y_ + kNameHeight, names_.row_name, kTextHeight, kQuietText);
  // Columns narrower than their labels show every second, fifth …
  std::vector<AxisLabel> columns;
  for (size_t c = 0; c < names_.columns.size(); ++c) {
    const PixelRect at = cell(0, static_cast<int64_t>(c));
    const int width = text_width(names_.columns[c], kTextHeight);
    columns.push_back(
        {at.x + std::max(0, (at.width - width) / 2), names_.columns[c], static_cast<int64_t>(c)});
  }
  for (const AxisLabel& label : fitting_labels(columns, 6, -1)) {
    canvas.text(label.pixel, corner_y_ + kNameHeight, label.text, kTextHeight, kText);
  }
  std::vector<AxisLabel> rows;
  for (size_t r = 0; r < names_.rows.size(); ++r) {
    const PixelRect at = cell(static_cast<int64_t>(r), 0);
    rows.push_back({at.y + std::max(0, (at.height - kTextHeight) / 2), names_.rows[r],
                    static_cast<int64_t>(r)});
  }
  for (const AxisLabel& label : fitting_labels(rows, 4, kTextHeight)) {
    canvas.text(left_ - kNameGap - text_width(label.text, kTextHeight), label.pixel, label.text,
                kTextHeight, kText);
  }
}

}  // namespace attnscope
