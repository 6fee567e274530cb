#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/problem/token_grid.h"

namespace attnscope {

/// A text to stand beside a pixel of an axis.
struct AxisLabel {
  int pixel = 0;
  std::string text;
  int64_t number = 0;  ///< the frame's, counted from 0; −1 for text, which is never left out
};
/// As many of the labels (ascending) as fit with `gap` pixels between them: all, or those whose
/// number is a multiple of 2, 5, 10 … Texts are `extent` pixels long: their height where they stand
/// below each other, −1 for the width with capitals of `cap_height`.
std::vector<AxisLabel> fitting_labels(const std::vector<AxisLabel>& labels, int gap, int extent,
                                      int cap_height);

/// One axis of a picture of an attention map: where its cells, frames and text stand, in pixels
/// from the axis's beginning. Frame lines take pixels of their own, so that no cell is hidden.
/// Immutable.
class MatrixAxis {
 public:
  /// A part of the sequence: the text, or a latent frame (without a grid, all of the video).
  struct Segment {
    int64_t token = 0;      ///< the first of it that is shown
    int64_t cell = 0;       ///< the cell whose edge is nearest to that token
    int64_t frame = 0;      ///< −1 for text and the named parts of a token map
    std::string name = {};  ///< of a named part
  };

  /// The tokens [first, end) in cells of `block`, `cell_pixels` wide. Frames less than a few pixels
  /// apart get no lines.
  MatrixAxis(const TokenGrid& tokens, IndexRange shown, int64_t block, int cell_pixels);

  int64_t cells() const { return cells_; }
  int cell_pixels() const { return cell_pixels_; }
  /// Where cell c begins; c = cells: the end of the last one.
  int pixel(int64_t cell) const;
  int length() const { return pixel(cells_); }
  const std::vector<Segment>& segments() const { return segments_; }
  /// The cell after the last of segment i.
  int64_t segment_end(size_t i) const;
  /// The cells before which a line stands, ascending.
  const std::vector<int64_t>& lines() const { return lines_; }

  /// "text", "t 3" at the beginnings of the segments; nothing without a grid.
  std::vector<AxisLabel> names() const;
  /// Token numbers at the same places; without a grid, round numbers.
  std::vector<AxisLabel> numbers() const;

 private:
  void find_segments(const TokenGrid& tokens);
  void find_lines();

  IndexRange shown_;
  int64_t block_ = 1, cells_ = 0;
  int cell_pixels_ = 1;
  bool has_grid_ = false;
  std::vector<Segment> segments_;
  std::vector<int64_t> lines_;
};

}  // namespace attnscope
