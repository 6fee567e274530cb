#pragma once

#include <string>
#include <vector>

#include "io/pictures/film/filmstrip.h"

namespace attnscope {

/// Many query volumes as small films beside and below each other: of each its frames in equal
/// lines, a short label, the query's cell outlined; a legend for all above them. Each film has a
/// colour range of its own unless the style gives one. Labels and legend take as many lines as they
/// need, and nothing of them is cut. Cells are the largest whole pixels with
/// which the page is at most as high as it is wide, or has the style's height; the smallest that
/// are still seen where none are, up to a page of three times its width. Borrows the volumes, which
/// must all have the grid's size and need no values before they are drawn.
class FilmGrid {
 public:
  /// Films of more volumes than this are a grid, unless the style has cells or columns.
  static constexpr size_t kMostStrips = 12;
  static bool suits(const QueryVolumes& volumes, const FilmStyle& style);

  /// Throws Error(usage) where the page is too small or would be too high, with what helps.
  FilmGrid(const QueryVolumes& volumes, FilmStyle style);

  int width() const { return width_; }
  int height() const { return height_of(shape_); }
  /// The header, and a band a line of films.
  PageBands page() const;
  int64_t band_bytes() const;
  /// Where a cell of a volume stands on the page; its frame must be one that is drawn.
  PixelRect cell(size_t volume, int64_t t, int64_t y, int64_t x) const;

 private:
  /// How the frames of a film and the films of a page stand.
  struct Shape {
    int cell = 1, per_line = 1, lines = 1, across = 1;
  };

  /// A text of the legend, or its bar of colours, and where that stands on the page.
  struct LegendPart {
    std::string words;  ///< empty: the bar
    int width = 0;
    int x = 0, y = 0;
  };

  void find_texts();
  void find_labels(const std::vector<std::string>& labels);
  void choose_shape();
  Shape shape_of(int cell) const;
  void check_shape(int wide) const;
  int inner_width() const;
  int film_width(int cell, int per_line) const;
  int film_height(const Shape& shape) const;
  int height_of(const Shape& shape) const;
  int label_height() const;
  LegendPart legend_text(std::string words) const;
  std::vector<LegendPart> widest_legend() const;
  std::vector<std::string> range_ends() const;
  std::vector<LegendPart> legend_of(const std::vector<ColourScale>& scales) const;
  std::vector<LegendPart> placed(std::vector<LegendPart> parts) const;
  /// Of frame number `i` of those drawn, from the film's left upper corner.
  PixelRect frame(size_t i) const;
  bool one_range() const { return !style_.colours.range.quantiles; }
  Canvas header(const std::vector<ColourScale>& scales) const;
  void draw_film(Canvas& canvas, size_t volume, const ColourScale& scale) const;

  const QueryVolumes& volumes_;
  FilmStyle style_;
  std::vector<int64_t> frames_;  ///< that are drawn
  PictureText text_;
  std::vector<std::vector<std::string>> labels_;  ///< of each volume its lines
  int label_lines_ = 1;                           ///< of the label that has most
  int label_width_ = 0;                           ///< of the widest
  int legend_width_ = 0;                          ///< of its widest part
  int legend_right_ = 0;                          ///< where it ends on the page
  Shape shape_;
  int width_ = 0;
  int top_ = 0;  ///< of the first line of films
};

}  // namespace attnscope
