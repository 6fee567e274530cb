#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace attnscope {

/// The room that an atlas has, in pixels.
struct AtlasRoom {
  double width = 0, height = 0;
  double labels = 0;           ///< left of the cells: names of layers
  double name = 0;             ///< below each cell: its head's name
  double gap = 0;              ///< between layers
  double least = 0, most = 0;  ///< sides of a cell
};

/// Cells side by side, of one layer.
struct AtlasRow {
  size_t line = 0;   ///< of the atlas
  size_t first = 0;  ///< head of the line
  size_t count = 0;
  double y = 0;  ///< top, from the first row's
};

/// Where the cells of an atlas stand. Layers stand below each other; heads that have no room beside
/// each other go on in rows of about equal length. A value.
struct AtlasLayout {
  double cell = 0;     ///< from one cell to the next
  double tall = 0;     ///< height of a cell, `cell` or more
  double pitch = 0;    ///< height of a row: its cells and what stands below them
  size_t columns = 0;  ///< cells of the longest row
  double height = 0;   ///< of all rows
  bool wrapped = false;
  std::vector<AtlasRow> rows;

  /// Cells as large as fit the room, times `zoom`, which may make them larger than its `most`;
  /// heads wrap where that makes cells a quarter larger. Cells that the room's width keeps small
  /// are up to twice as tall where that fills its height. Where the least cells are too many, rows
  /// go on below the room. `lines`: how many heads each has.
  static AtlasLayout fit(std::span<const size_t> lines, const AtlasRoom& room, double zoom = 1);
  /// The first row that ends below `y`.
  size_t row_at(double y) const;

 private:
  void stack(const AtlasRoom& room, bool fills);
};

}  // namespace attnscope
