#pragma once

#include <vector>

#include "io/pictures/film/film_frame.h"
#include "io/pictures/film/filmstrip.h"
#include "io/pictures/picture_page.h"

namespace attnscope {

/// Query volumes played through time: one latent frame of each, enlarged, side by side, with the
/// frame's number, a line that shows how far it is, colour bars. A volume's range is that of all
/// its frames. Borrows the volumes.
class FilmAnimation {
 public:
  /// As many volumes as one animation may show.
  static constexpr int64_t kMostVolumes = 16;

  explicit FilmAnimation(const QueryVolumes& volumes, FilmStyle style = {});
  /// The images that it has: those of the frames that are drawn.
  int frames() const { return static_cast<int>(frames_.size()); }
  int width() const { return width_; }
  int height() const { return height_; }
  /// Image i.
  Canvas frame(int i) const;
  /// Where the cells of a volume stand, in every image.
  FrameCells cells(size_t volume) const;

 private:
  PageSize lay_out(int cell);
  void draw_time(Canvas& canvas, int64_t t) const;

  const QueryVolumes& volumes_;
  FilmStyle style_;
  std::vector<int64_t> frames_;  ///< that are drawn
  PictureText text_;
  std::vector<ColourScale> scales_;
  int cell_ = 1, per_line_ = 1;
  int width_ = 0, height_ = 0;
};

}  // namespace attnscope
