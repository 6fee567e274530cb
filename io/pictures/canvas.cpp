#include "io/pictures/canvas.h"

#include <algorithm>
#include <cmath>

#include "io/pictures/text/font_subset.h"
#include "io/pictures/text/text_ink.h"

namespace attnscope {
namespace {

uint8_t mixed_channel(uint8_t under, uint8_t ink, int level, int full) {
  return static_cast<uint8_t>((under * (full - level) + ink * level + full / 2) / full);
}

Rgb mixed_ink(Rgb under, Rgb ink, int level, int full) {
  return {mixed_channel(under.r, ink.r, level, full), mixed_channel(under.g, ink.g, level, full),
          mixed_channel(under.b, ink.b, level, full)};
}

/// How far p is from the line between a and b.
double distance_to(PixelPoint p, PixelPoint a, PixelPoint b) {
  const double dx = b.x - a.x;
  const double dy = b.y - a.y;
  const double square = dx * dx + dy * dy;
  const double along =
      square > 0 ? std::clamp(((p.x - a.x) * dx + (p.y - a.y) * dy) / square, 0.0, 1.0) : 0;
  const double x = a.x + along * dx - p.x;
  const double y = a.y + along * dy - p.y;
  return std::sqrt(x * x + y * y);
}

}  // namespace

Canvas::Canvas(int width, int height, Rgb background)
    : width_(width),
      height_(height),
      pixels_(static_cast<size_t>(width) * static_cast<size_t>(height), background) {}

Canvas::Canvas(int width, int height, const PictureStyle& style)
    : Canvas(width, height, style.background) {
  keeps_marks_ = style.vector;
}

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
  if (keeps_marks_) {
    marks_.emplace_back(TextMark{x, y, std::string(text), cap_height, colour});
  }
  // A vector file brings the fonts of its letters along where these can be cut.
  const auto drawn = [&](const FontFace* face) {
    return !keeps_marks_ || face == nullptr || !has_truetype_outlines(*face);
  };
  for (const LetterInk& letter : text_ink_of(text, cap_height, drawn)) {
    const uint8_t* level = letter.levels.data();
    for (int row = y + letter.y; row < y + letter.y + letter.height; ++row) {
      for (int column = x + letter.x; column < x + letter.x + letter.width; ++column, ++level) {
        if (*level == 0 || row < 0 || row >= height_ || column < 0 || column >= width_) continue;
        Rgb& pixel = this->row(row)[static_cast<size_t>(column)];
        pixel = mixed_ink(pixel, colour, *level, kFullInk);
      }
    }
  }
}

void Canvas::polyline(std::span<const PixelPoint> points, double width, Rgb colour) {
  if (points.empty()) return;
  if (keeps_marks_) {
    marks_.emplace_back(LineMark{{points.begin(), points.end()}, width, colour});
    return;
  }
  // Pieces that meet must not be mixed in twice: the line's cover is found first.
  constexpr int kWhole = 255;
  const double reach = width / 2 + 0.5;
  const auto cut = [](double value, int most) {
    return static_cast<int>(std::clamp(value, 0.0, static_cast<double>(most)));
  };
  const auto [least_x, most_x] = std::minmax_element(
      points.begin(), points.end(), [](PixelPoint a, PixelPoint b) { return a.x < b.x; });
  const auto [least_y, most_y] = std::minmax_element(
      points.begin(), points.end(), [](PixelPoint a, PixelPoint b) { return a.y < b.y; });
  const int first_x = cut(std::floor(least_x->x - reach), width_);
  const int last_x = cut(std::ceil(most_x->x + reach), width_);
  const int first_y = cut(std::floor(least_y->y - reach), height_);
  const int last_y = cut(std::ceil(most_y->y + reach), height_);
  const auto cover_width = static_cast<size_t>(last_x - first_x);
  std::vector<uint8_t> cover(cover_width * static_cast<size_t>(last_y - first_y));
  const auto place = [&](int x, int y) {
    return static_cast<size_t>(y - first_y) * cover_width + static_cast<size_t>(x - first_x);
  };
  for (size_t i = 0; i < points.size(); ++i) {
    const PixelPoint a = points[i];
    const PixelPoint b = points[std::min(i + 1, points.size() - 1)];
    const int top = cut(std::floor(std::min(a.y, b.y) - reach), height_);
    const int bottom = cut(std::ceil(std::max(a.y, b.y) + reach), height_);
    const int left = cut(std::floor(std::min(a.x, b.x) - reach), width_);
    const int right = cut(std::ceil(std::max(a.x, b.x) + reach), width_);
    for (int y = top; y < bottom; ++y) {
      for (int x = left; x < right; ++x) {
        const double inside = reach - distance_to({x + 0.5, y + 0.5}, a, b);
        uint8_t& most = cover[place(x, y)];
        most = std::max(most,
                        static_cast<uint8_t>(std::lround(kWhole * std::clamp(inside, 0.0, 1.0))));
      }
    }
  }
  for (int y = first_y; y < last_y; ++y) {
    const std::span<Rgb> pixels = row(y);
    for (int x = first_x; x < last_x; ++x) {
      const uint8_t level = cover[place(x, y)];
      Rgb& pixel = pixels[static_cast<size_t>(x)];
      if (level != 0) pixel = mixed_ink(pixel, colour, level, kWhole);
    }
  }
}

}  // namespace attnscope
