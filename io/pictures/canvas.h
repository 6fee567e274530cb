#pragma once

#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "io/pictures/colormap.h"
#include "io/pictures/picture_style.h"

namespace attnscope {

/// A rectangle of pixels, x to the right, y down.
struct PixelRect {
  int x = 0, y = 0, width = 0, height = 0;
};

/// A place on a picture; pixel (0, 0) reaches from 0 to 1.
struct PixelPoint {
  double x = 0, y = 0;
};

/// A text and a line as Canvas::text() and polyline() were given them.
struct TextMark {
  int x = 0, y = 0;
  std::string text;
  int cap_height = 0;
  Rgb colour;
};
struct LineMark {
  std::vector<PixelPoint> points;
  double width = 1;
  Rgb colour;
};
using CanvasMark = std::variant<TextMark, LineMark>;

/// An RGB picture in memory. What lies outside is cut off.
class Canvas {
 public:
  Canvas(int width, int height, Rgb background);
  /// A page of that style: its ground, and marks where the style is a vector file's.
  Canvas(int width, int height, const PictureStyle& style);
  int width() const { return width_; }
  int height() const { return height_; }
  Rgb at(int x, int y) const;
  /// One row of pixels.
  std::span<const Rgb> row(int y) const;
  std::span<Rgb> row(int y);

  void fill(PixelRect rect, Rgb colour);
  /// A frame of `thickness` pixels just outside `rect`.
  void outline(PixelRect rect, int thickness, Rgb colour);
  /// One line of text that begins at x, its capitals `cap_height` pixels high from y down
  /// (text_ink.h).
  void text(int x, int y, std::string_view text, int cap_height, Rgb colour);
  /// A line through the points, with smooth edges, round joins and round ends.
  void polyline(std::span<const PixelPoint> points, double width, Rgb colour);
  /// Texts and lines that are not in the pixels, in the order they were drawn; they lie above all
  /// pixels. Empty where the page is one of pixels alone.
  std::span<const CanvasMark> marks() const { return marks_; }

 private:
  int width_ = 0;
  int height_ = 0;
  bool keeps_marks_ = false;
  std::vector<Rgb> pixels_;
  std::vector<CanvasMark> marks_;
};

}  // namespace attnscope
