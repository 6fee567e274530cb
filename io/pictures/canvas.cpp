#include "io/pictures/canvas.h"

#include <algorithm>

#include "io/pictures/text/text_ink.h"

namespace attnscope {

Canvas::Canvas(int width, int height, Rgb background)
    : width_(width),
      height_(height),
      pixels_(static_cast<size_t>(width) * static_cast<size_t>(height), background) {}

Rgb Canvas::at(int x, int y) const { return row(y)[static_cast<size_t>(x)]; }

std::span<const Rgb> Canvas::row(int y) const {
  const auto width = static_cast<size_t>(width_);
  return std::span(pixels_).subspan(static_cast<size_t>(y) * width, width);
}

std::span<Rgb> Canvas::row(int y) {
  const auto width = static_cast<size_t>(width_);
  return std::span(pixels_).subspan(static_cast<size_t>(y) * width, width);
}

void Canvas::fill(PixelRect rect, Rgb colour) {
  const int left = std::max(rect.x, 0);
  const int right = std::min(rect.x + rect.width, width_);
  const int bottom = std::min(rect.y + rect.height, height_);
  for (int y = std::max(rect.y, 0); y < bottom && left < right; ++y) {
    const auto begin = pixels_.begin() + static_cast<ptrdiff_t>(y) * width_;
    std::fill(begin + left, begin + right, colour);
  }
}

void Canvas::outline(PixelRect r, int thickness, Rgb colour) {
  const int t = thickness;
  fill({r.x - t, r.y - t, r.width + 2 * t, t}, colour);
  fill({r.x - t, r.y + r.height, r.width + 2 * t, t}, colour);
  fill({r.x - t, r.y, t, r.height}, colour);
  fill({r.x + r.width, r.y, t, r.height}, colour);
}

void Canvas::text(int x, int y, std::string_view text, int cap_height, Rgb colour) {
  const auto mixed = [](uint8_t under, uint8_t ink, int level) {
    return static_cast<uint8_t>((under * (kFullInk - level) + ink * level + kFullInk / 2) /
                                kFullInk);
  };
  for (const LetterInk& letter : text_ink(text, cap_height)) {
    const uint8_t* level = letter.levels.data();
    for (int row = y + letter.y; row < y + letter.y + letter.height; ++row) {
      for (int column = x + letter.x; column < x + letter.x + letter.width; ++column, ++level) {
        if (*level == 0 || row < 0 || row >= height_ || column < 0 || column >= width_) continue;
        Rgb& pixel = pixels_[static_cast<size_t>(row) * static_cast<size_t>(width_) +
                             static_cast<size_t>(column)];
        pixel = {mixed(pixel.r, colour.r, *level), mixed(pixel.g, colour.g, *level),
                 mixed(pixel.b, colour.b, *level)};
      }
    }
  }
}

}  // namespace attnscope
