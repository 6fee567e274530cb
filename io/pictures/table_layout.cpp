#include "io/pictures/table_layout.h"

#include <algorithm>

#include "io/pictures/text/text_ink.h"

namespace attnscope {
namespace {

constexpr int kNameGap = 12;

int name_height(const PictureStyle& look) { return look.text_height + look.px(10); }

}  // namespace

TableLayout::TableLayout(const TableNames& names, const PictureStyle& look, int left, int top,
                         int cell_width, int cell_height, int gap)
    : names_(&names),
      look_(&look),
      corner_x_(left),
      corner_y_(top),
      cell_width_(cell_width),
      cell_height_(cell_height),
      gap_(gap) {
  label_width_ = text_width(names.row_name, look_->text_height);
  for (const std::string& name : names.rows) {
    label_width_ = std::max(label_width_, text_width(name, look_->text_height));
  }
  left_ = left + label_width_ + look.px(kNameGap);
  top_ = top + 2 * name_height(look);
}

PixelRect TableLayout::cell(int64_t row, int64_t column) const {
  return {left_ + static_cast<int>(column) * (cell_width_ + gap_),
          top_ + static_cast<int>(row) * (cell_height_ + gap_), cell_width_, cell_height_};
}

PixelRect TableLayout::cells() const {
  const auto rows = static_cast<int>(names_->rows.size());
  const auto columns = static_cast<int>(names_->columns.size());
  return {left_, top_, columns * (cell_width_ + gap_) - gap_, rows * (cell_height_ + gap_) - gap_};
}

void TableLayout::draw_labels(Canvas& canvas) const {
  canvas.text(left_, corner_y_, names_->column_name, look_->text_height, look_->quiet_text);
  const int row_name_x =
      left_ - look_->px(kNameGap) - text_width(names_->row_name, look_->text_height);
  canvas.text(row_name_x, corner_y_ + name_height(*look_), names_->row_name, look_->text_height,
              look_->quiet_text);
  // Columns narrower than their labels show every second, fifth …
  std::vector<AxisLabel> columns;
  for (size_t c = 0; c < names_->columns.size(); ++c) {
    const PixelRect at = cell(0, static_cast<int64_t>(c));
    const int width = text_width(names_->columns[c], look_->text_height);
    columns.push_back(
        {at.x + std::max(0, (at.width - width) / 2), names_->columns[c], static_cast<int64_t>(c)});
  }
  for (const AxisLabel& label : fitting_labels(columns, look_->px(6), -1, look_->text_height)) {
    canvas.text(label.pixel, corner_y_ + name_height(*look_), label.text, look_->text_height,
                look_->text);
  }
  std::vector<AxisLabel> rows;
  for (size_t r = 0; r < names_->rows.size(); ++r) {
    const PixelRect at = cell(static_cast<int64_t>(r), 0);
    rows.push_back({at.y + std::max(0, (at.height - look_->text_height) / 2), names_->rows[r],
                    static_cast<int64_t>(r)});
  }
  for (const AxisLabel& label :
       fitting_labels(rows, look_->px(4), look_->text_height, look_->text_height)) {
    canvas.text(left_ - look_->px(kNameGap) - text_width(label.text, look_->text_height),
                label.pixel, label.text, look_->text_height, look_->text);
  }
}

}  // namespace attnscope
