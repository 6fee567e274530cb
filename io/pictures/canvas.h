#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "io/pictures/colormap.h"

namespace attnscope {

/// A rectangle of pixels, x to the right, y down.
struct PixelRect {
  int x = 0, y = 0, width = 0, height = 0;
};

/// An RGB picture in memory. What lies outside is cut off.
class Canvas {
 public:
  Canvas(int width, int height, Rgb background);
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

 private:
  int width_ = 0;
  int height_ = 0;
  std::vector<Rgb> pixels_;
};

}  // namespace attnscope
