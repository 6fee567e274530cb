#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/products/query_volumes.h"
#include "io/pictures/canvas.h"
#include "io/pictures/colour_scale.h"
#include "io/pictures/film/film_frame.h"
#include "io/pictures/film/film_over.h"
#include "io/pictures/grey_image.h"
#include "io/pictures/picture_page.h"

namespace attnscope {

/// How a filmstrip is drawn.
struct FilmStyle {
  ColourChoice colours;
  std::string unit = "weight";   ///< above the colour bars
  std::string frame_name = "t";  ///< "t 0", "t 1" … above the frames
  int64_t first_frame = 0;       ///< the number of the first one
  int frame_side = 240;          ///< frames are enlarged to about this many pixels
  /// The video under the weights: one picture a latent frame, or nothing.
  std::vector<GreyImage> video;
  bool over_video = false;  ///< a video will lie under them: pages are planned before it is read
  FilmOver over;            ///< how the numbers lie on it
  std::string about;        ///< what else the header says of the film; may be empty
  /// The latent frames that are drawn, ascending; empty: all. Colour ranges are of all.
  std::vector<int64_t> frames = {};
  int columns = 0;  ///< frames of a strip, or films of an animation, in a line; 0: chosen
  std::string fewer = "fewer heads";  ///< what makes it smaller
  PictureStyle look = {};

  bool has_video() const { return over_video || !video.empty(); }
  const GreyImage* video_frame(int64_t t) const {
    return video.empty() ? nullptr : &video[static_cast<size_t>(t)];
  }
};

/// How a volume's weights lie over the video: an outline for which none was chosen goes around the
/// cells that hold kOutlinedMass of the volume's weight.
FilmOver film_over_of(const FilmStyle& style, const QueryVolume& volume);

/// Throws Error(usage) where a frame to be drawn is none of the `frames` that there are.
void check_frames(const FilmStyle& style, int64_t frames);
/// The frames to be drawn of so many.
std::vector<int64_t> drawn_frames(const FilmStyle& style, int64_t frames);

/// The name of their numbers: "weight", or "weight × ‖v‖".
std::string film_unit(const QueryVolumes& volumes);

/// Title and lines of what the volumes have in common.
PictureText film_header(const QueryVolumes& volumes, const FilmStyle& style);

/// The mean of a volume's values, "mean 3.2 %"; empty where its pictures do not tell it.
std::string mean_words(const QueryVolumes& volumes, const QueryVolume& volume);
/// As wide as a number beside a label is written: a page is laid out before there are values.
std::string widest_number(const QueryVolumes& volumes, const PictureStyle& look);

/// The eviction flags of frame t, one for each of its `cells`; empty where the volume has none.
std::span<const uint8_t> evicted_in(const QueryVolume& volume, int64_t t, size_t cells);

/// The colours of each volume.
std::vector<ColourScale> film_scales(const QueryVolumes& volumes, const FilmStyle& style);

/// One frame of one of the volumes.
struct FilmFrame {
  const QueryVolumes& volumes;
  const QueryVolume& volume;
  int64_t t = 0;
};
/// Draws its cells, and outlines the query's and the one where it is found again.
void draw_film_frame(Canvas& canvas, const FrameCells& at, const FilmFrame& frame,
                     const ColourScale& scale, const FilmStyle& style, const FilmOver& over);

/// A picture of query volumes: a header, and a strip a volume. Each strip has its frames in one or
/// more rows, every cell enlarged to a square, the query's cell outlined, frame numbers, and a
/// colour bar; a strip has a colour range of its own. Borrows the volumes, which must all have the
/// grid's size. On a page of a given width cells are as large as it leaves room, frames in lines of
/// which each is at least a hundred pixels of the dark style wide, or fifty where a line would have
/// one alone. Throws Error(usage) where the page is too small, or so small a box that frames, of
/// which neither cells nor columns were chosen, would be narrower than that.
class Filmstrip {
 public:
  explicit Filmstrip(const QueryVolumes& volumes, FilmStyle style = {});

  int width() const { return width_; }
  int height() const;
  /// The header, and a band a strip.
  PageBands page() const;
  int64_t band_bytes() const;

  int header_height() const { return header_height_; }
  int strip_height() const;
  /// Where a cell of a strip stands; its frame must be one that is drawn.
  PixelRect cell(int64_t t, int64_t y, int64_t x) const;

 private:
  Canvas header() const;
  Canvas strip(const QueryVolume& volume, const ColourScale& scale, TickNotation notation) const;
  void find_labels();
  void choose_cells();
  void choose_lines();
  int page_cell(int per_line);
  int frames_a_line();
  PageSize size_at(int cell);
  bool has_masses() const;
  bool has_sums() const { return has_masses() || volumes_.tells_mean; }
  std::vector<std::string> label_lines(const QueryVolume& volume) const;
  std::vector<std::string> mass_lines(std::string_view video, std::string_view text,
                                      int room) const;
  std::vector<std::string> sum_lines(const QueryVolume* volume, int room) const;
  int label_height() const;
  int strip_width() const;
  void draw_label(Canvas& canvas, const QueryVolume& volume) const;
  void draw_frames(Canvas& canvas, const QueryVolume& volume, const ColourScale& scale) const;
  PixelRect bar() const;
  int frame_width() const;
  int frame_height() const;
  int frames_right() const;

  const QueryVolumes& volumes_;
  FilmStyle style_;
  std::vector<int64_t> frames_;  ///< that are drawn
  int rows_ = 0, columns_ = 0;   ///< cells of a frame
  int cell_ = 1;                 ///< pixels of a cell's side
  int per_line_ = 1;             ///< frames side by side
  int lines_ = 1;
  int header_height_ = 0;
  int label_lines_ = 1;  ///< of the strip that has most
  bool masses_below_ =
      false;  ///< the numbers beside a label have a line of their own below its label
  int width_ = 0;
};

}  // namespace attnscope
