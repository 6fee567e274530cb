#pragma once

#include <string>
#include <vector>

#include "io/canvas.h"
#include "io/volume_files.h"

namespace attnscope {

/// The range of a volume's colours, on a log₂ scale.
struct WeightRange {
  double low = 0;  ///< > 0, < high; smaller weights are shown like it, 0 as masked
  double high = 0;
};

/// The 1 % and 99.9 % quantiles of the weights that are not 0, widened to an octave at least; 0.5
/// to 1 where there is none.
WeightRange display_range(const std::vector<float>& weights);

/// The colour of a weight: viridis over log₂; 0 and less darker than any of it.
Rgb weight_colour(double weight, const WeightRange& range);

/// A picture of query volumes: a header, and a strip a volume. Each strip has its frames in one or
/// more rows, every cell enlarged to a square, the query's cell outlined, frame numbers, and a
/// colour bar. Borrows the volumes, which must all have the grid's size.
class Filmstrip {
 public:
  explicit Filmstrip(const QueryVolumes& volumes);

  int width() const { return width_; }
  int height() const;
  Canvas header() const;
  Canvas strip(const QueryVolume& volume) const;

  int header_height() const;
  int strip_height() const;
  /// Where a cell of a strip stands.
  PixelRect cell(int64_t t, int64_t y, int64_t x) const;

 private:
  void draw_label(Canvas& canvas, const QueryVolume& volume) const;
  void draw_frames(Canvas& canvas, const QueryVolume& volume, const WeightRange& range) const;
  void draw_query(Canvas& canvas, const QueryVolume& volume) const;
  void draw_colour_bar(Canvas& canvas, const WeightRange& range) const;
  int frame_width() const;
  int frame_height() const;
  int frames_right() const;

  const QueryVolumes& volumes_;
  int frames_ = 0;
  int rows_ = 0, columns_ = 0;  ///< cells of a frame
  int cell_ = 1;                ///< pixels of a cell's side
  int per_line_ = 1;            ///< frames side by side
  int lines_ = 1;
  int width_ = 0;
};

}  // namespace attnscope
