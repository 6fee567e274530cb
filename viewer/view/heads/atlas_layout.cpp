#include "viewer/view/heads/atlas_layout.h"

#include <algorithm>
#include <cmath>

namespace attnscope {
namespace {

/// Wrapped heads are harder to compare from layer to layer: they must gain this much.
constexpr double kWorthWrapping = 1.25;
/// How much taller than wide a cell may be.
constexpr double kTallest = 2;

size_t rows_of(size_t heads, size_t columns) { return (heads + columns - 1) / columns; }

/// Columns of a line of so many heads that has at most `most` of them: rows are about equally long.
size_t even_columns(size_t heads, size_t most) {
  return rows_of(heads, rows_of(heads, std::min(heads, most)));
}

size_t columns_in(double width, double cell) {
  return static_cast<size_t>(std::max(1.0, std::floor(width / cell)));
}

bool fits(std::span<const size_t> lines, const AtlasRoom& room, double cell) {
  const size_t columns = columns_in(room.width - room.labels, cell);
  size_t rows = 0;
  for (const size_t heads : lines) rows += rows_of(heads, columns);
  const double gaps = rows > lines.size() ? room.gap * static_cast<double>(lines.size() - 1) : 0;
  return static_cast<double>(rows) * (cell + room.name) + gaps <= room.height;
}

}  // namespace

AtlasLayout AtlasLayout::fit(std::span<const size_t> lines, const AtlasRoom& room, double zoom) {
  AtlasLayout layout;
  const size_t longest = lines.empty() ? 0 : *std::max_element(lines.begin(), lines.end());
  if (longest == 0) return layout;
  const double width = room.width - room.labels;
  const double least = std::max(1.0, std::floor(room.least));
  const double most = std::floor(std::min(room.most, width));
  double cell = least;
  for (double side = most; side > least; --side) {
    if (!fits(lines, room, side)) continue;
    cell = side;
    break;
  }
  const auto count = static_cast<double>(lines.size());
  const double by_height = room.height / count - room.name;
  const double by_width = width / static_cast<double>(longest);
  const double unwrapped = std::floor(std::min({most, by_width, by_height}));
  if (unwrapped >= least && cell < kWorthWrapping * unwrapped) cell = unwrapped;
  layout.cell = std::max(least, std::floor(cell * zoom));
  const size_t room_columns = columns_in(width, layout.cell);
  layout.wrapped = room_columns < longest;
  for (size_t line = 0; line < lines.size(); ++line) {
    if (lines[line] == 0) continue;
    const size_t columns = even_columns(lines[line], room_columns);
    layout.columns = std::max(layout.columns, columns);
    for (size_t first = 0; first < lines[line]; first += columns) {
      layout.rows.push_back({line, first, std::min(columns, lines[line] - first), 0});
    }
  }
  layout.stack(room, zoom == 1 && layout.cell < std::floor(room.most));
  return layout;
}

/// Puts the rows below each other; `fills`: with taller cells where the room has height left.
void AtlasLayout::stack(const AtlasRoom& room, bool fills) {
  const auto gap = [&](size_t row) {
    return wrapped && row > 0 && rows[row].first == 0 ? room.gap : 0;
  };
  double gaps = 0;
  for (size_t row = 0; row < rows.size(); ++row) gaps += gap(row);
  const double each = std::floor((room.height - gaps) / static_cast<double>(rows.size()));
  tall = fills ? std::clamp(each - room.name, cell, std::floor(kTallest * cell)) : cell;
  pitch = tall + room.name;
  for (size_t row = 0; row < rows.size(); ++row) {
    height += gap(row);
    rows[row].y = height;
    height += pitch;
  }
}

size_t AtlasLayout::row_at(double y) const {
  const auto found = std::partition_point(rows.begin(), rows.end(),
                                          [&](const AtlasRow& row) { return row.y + pitch <= y; });
  return static_cast<size_t>(found - rows.begin());
}

}  // namespace attnscope
