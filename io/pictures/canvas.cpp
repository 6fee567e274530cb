#include "io/pictures/canvas.h"

#include <algorithm>

#include "io/pictures/bitmap_font.h"

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

void Canvas::text(int x, int y, std::string_view text, int scale, Rgb colour) {
  for (const Glyph& glyph : text_glyphs(text)) {
    for (int row = 0; row < kGlyphHeight; ++row) {
      for (int column = 0; column < glyph.width; ++column) {
        if (glyph.dot(column, row)) {
          fill({x + column * scale, y + row * scale, scale, scale}, colour);
        }
      }
    }
    x += (glyph.width + kLetterSpace) * scale;
  }
}

}  // namespace attnscope
