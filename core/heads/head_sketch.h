#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/reduce/head_fields.h"

namespace attnscope {

/// How a map is cut into the few cells of a sketch: cell (r, c) covers the entries from row
/// r·height and key c·width on, fewer at the map's far edges. Sides are powers of two, each the
/// smallest that leaves at most kMostCells cells along its axis.
struct SketchCells {
  static constexpr int64_t kMostCells = 64;
  int64_t queries = 0, keys = 0;  ///< of the map
  int64_t height = 1, width = 1;  ///< of a cell, in entries

  static SketchCells of(int64_t queries, int64_t keys);
  int64_t rows() const { return (queries + height - 1) / height; }
  int64_t cols() const { return (keys + width - 1) / width; }
  int64_t count() const { return rows() * cols(); }
  friend bool operator==(const SketchCells&, const SketchCells&) = default;
};

/// A head at a glance: its map in a few cells, and its numbers. A value.
struct HeadSketch {
  SketchCells cells;
  /// [cells.rows(), cells.cols()]: the largest and the mean weight of a cell over the rows that
  /// were computed; masked entries are 0.
  std::vector<float> max, mean;
  int64_t rows = 0;    ///< that were computed
  bool exact = false;  ///< these are all rows
  /// The number of every field of head_fields(), in that order; NaN where it is not defined.
  std::vector<double> numbers;
  HeadClass head_class = HeadClass::undefined;

  static int64_t bytes(const SketchCells& cells);
  /// NaN where it is not defined. The field must be one of head_fields().
  double number(const HeadField& field) const;
};

/// True of two sketches with equal values; NaN counts as equal to NaN.
bool same_sketch(const HeadSketch& a, const HeadSketch& b);

/// The rows that a sketch is made of unless all are, ascending; those of `stats --sample`.
std::vector<int64_t> sketch_rows(int64_t queries);

/// Pools rows of a map into the cells of a sketch. Not thread-safe.
class SketchCanvas {
 public:
  explicit SketchCanvas(const SketchCells& cells);

  /// `weights` are row `row` of the map, [keys].
  void add(int64_t row, std::span<const float> weights);
  /// Blocks of min(height, width) entries along a side that begin at row `row` of the map: a
  /// largest weight and a sum each. Every row of blocks once; several threads may not add at once.
  void add_blocks(int64_t row, std::span<const float> max, std::span<const double> sum);
  /// Cells, `numbers` and the class into a sketch of the rows that were added.
  HeadSketch finish(const HeadMetrics& metrics) const;

 private:
  void take(int64_t cell, float max, double sum);

  SketchCells cells_;
  std::vector<float> max_;
  std::vector<double> sum_;
  std::vector<int64_t> rows_;  ///< added, a row of cells
};

}  // namespace attnscope
