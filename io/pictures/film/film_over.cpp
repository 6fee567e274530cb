#include "io/pictures/film/film_over.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

namespace attnscope {
namespace {

constexpr std::array<std::string_view, 3> kModes{"tint", "outline", "contour"};

/// How much of a number's colour covers the video, at the low and at the high end of the scale.
constexpr double kLeastCover = 0.15;
constexpr double kMostCover = 0.85;
/// Beside a line, so that it shows on bright frames too.
constexpr Rgb kShadow{16, 18, 20};
constexpr Rgb kOutline{255, 255, 255};

struct CellLayout {
  int width, height, rows, columns;
  int x(int column) const {
    return static_cast<int>(static_cast<int64_t>(column) * width / columns);
  }
  int y(int row) const { return static_cast<int>(static_cast<int64_t>(row) * height / rows); }
};

/// Of one: what covers are counted in.
constexpr int kWholeCover = 1 << 16;

int cover_of(double share) { return static_cast<int>(std::lround(kWholeCover * share)); }

Rgb mixed(uint8_t grey, Rgb colour, int cover) {
  const auto channel = [&](uint8_t c) {
    return static_cast<uint8_t>(grey +
                                (((static_cast<int>(c) - grey) * cover + kWholeCover / 2) >> 16));
  };
  return {channel(colour.r), channel(colour.g), channel(colour.b)};
}

void paint_frame(Canvas& canvas, const GreyImage& frame) {
  for (int y = 0; y < frame.height; ++y) {
    const std::span<Rgb> row = canvas.row(y);
    const uint8_t* const from =
        frame.pixels.data() + static_cast<size_t>(y) * static_cast<size_t>(frame.width);
    for (int x = 0; x < frame.width; ++x) row[static_cast<size_t>(x)] = {from[x], from[x], from[x]};
  }
}

void paint_tint(Canvas& canvas, const GreyImage& frame, std::span<const float> numbers,
                const CellLayout& at, const ColourScale& scale, const FilmOver& how) {
  for (int r = 0; r < at.rows; ++r) {
    for (int c = 0; c < at.columns; ++c) {
      const float number = numbers[static_cast<size_t>(r) * static_cast<size_t>(at.columns) +
                                   static_cast<size_t>(c)];
      if (!std::isfinite(number)) continue;
      double unit = std::clamp(scale.unit(number), 0.0, 1.0);
      if (how.by_size) unit = std::abs(2 * unit - 1);
      const int cover = cover_of(film_cover(unit, how.opacity));
      const Rgb colour = scale.colour(number);
      for (int y = at.y(r); y < at.y(r + 1); ++y) {
        const std::span<Rgb> row = canvas.row(y);
        const uint8_t* const grey =
            frame.pixels.data() + static_cast<size_t>(y) * static_cast<size_t>(frame.width);
        for (int x = at.x(c); x < at.x(c + 1); ++x) {
          row[static_cast<size_t>(x)] = mixed(grey[x], colour, cover);
        }
      }
    }
  }
}

/// A rectangle of pixels, cut at the picture's edges.
void fill_cut(Canvas& canvas, int x0, int y0, int x1, int y1, Rgb colour) {
  x0 = std::max(x0, 0);
  y0 = std::max(y0, 0);
  x1 = std::min(x1, canvas.width());
  y1 = std::min(y1, canvas.height());
  if (x0 < x1 && y0 < y1) canvas.fill({x0, y0, x1 - x0, y1 - y0}, colour);
}

/// Lines along the edges between cells within and cells without, drawn inside.
void paint_outline(Canvas& canvas, std::span<const float> numbers, const CellLayout& at,
                   const FilmOver& how) {
  const auto within = [&](int r, int c) {
    if (r < 0 || c < 0 || r >= at.rows || c >= at.columns) return false;
    const float number =
        numbers[static_cast<size_t>(r) * static_cast<size_t>(at.columns) + static_cast<size_t>(c)];
    if (how.by_size) return std::isfinite(number) && std::abs(number) >= how.outlined;
    return !std::isnan(number) && number >= how.outlined;
  };
  const auto lines = [&](int width, Rgb colour) {
    for (int r = 0; r < at.rows; ++r) {
      for (int c = 0; c < at.columns; ++c) {
        if (!within(r, c)) continue;
        const int x0 = at.x(c), x1 = at.x(c + 1), y0 = at.y(r), y1 = at.y(r + 1);
        if (!within(r - 1, c)) fill_cut(canvas, x0, y0, x1, y0 + width, colour);
        if (!within(r + 1, c)) fill_cut(canvas, x0, y1 - width, x1, y1, colour);
        if (!within(r, c - 1)) fill_cut(canvas, x0, y0, x0 + width, y1, colour);
        if (!within(r, c + 1)) fill_cut(canvas, x1 - width, y0, x1, y1, colour);
        // Corners where only the cell across is without.
        for (const int dy : {-1, 1}) {
          for (const int dx : {-1, 1}) {
            if (within(r + dy, c + dx) || !within(r + dy, c) || !within(r, c + dx)) continue;
            const int x = dx < 0 ? x0 : x1 - width;
            const int y = dy < 0 ? y0 : y1 - width;
            fill_cut(canvas, x, y, x + width, y + width, colour);
          }
        }
      }
    }
  };
  lines(how.line + 1, kShadow);
  lines(how.line, kOutline);
}

struct LinePoint {
  double x, y;
};

/// A line as wide as `width`, by steps of half a pixel.
void stroke(Canvas& canvas, LinePoint a, LinePoint b, int width, Rgb colour) {
  const double length = std::max(std::abs(b.x - a.x), std::abs(b.y - a.y));
  const int steps = std::max(1, static_cast<int>(std::ceil(2 * length)));
  for (int i = 0; i <= steps; ++i) {
    const double part = static_cast<double>(i) / steps;
    const int x = static_cast<int>(std::floor(a.x + part * (b.x - a.x) - width / 2.0 + 0.5));
    const int y = static_cast<int>(std::floor(a.y + part * (b.y - a.y) - width / 2.0 + 0.5));
    fill_cut(canvas, x, y, x + width, y + width, colour);
  }
}

/// Lines at one height through the numbers at the cells' middles (marching squares; of the two ways
/// through a saddle the one that parts its high corners where their mean is lower).
class Contours {
 public:
  Contours(std::span<const float> numbers, const CellLayout& at, const ColourScale& scale)
      : at_(at), units_(numbers.size()) {
    std::transform(numbers.begin(), numbers.end(), units_.begin(), [&](float number) {
      if (std::isnan(number)) return -1.0;
      const double unit = scale.unit(number);
      return std::isfinite(unit) ? std::clamp(unit, -1.0, 2.0) : (unit > 0 ? 2.0 : -1.0);
    });
  }

  void paint(Canvas& canvas, double height, int width, Rgb colour) const {
    for (int r = 0; r + 1 < at_.rows; ++r) {
      for (int c = 0; c + 1 < at_.columns; ++c) paint_square(canvas, r, c, height, width, colour);
    }
  }

 private:
  double unit(int r, int c) const {
    return units_[static_cast<size_t>(r) * static_cast<size_t>(at_.columns) +
                  static_cast<size_t>(c)];
  }
  LinePoint middle(int r, int c) const {
    return {(at_.x(c) + at_.x(c + 1)) / 2.0, (at_.y(r) + at_.y(r + 1)) / 2.0};
  }

  void paint_square(Canvas& canvas, int r, int c, double height, int width, Rgb colour) const {
    // Corners around the square, and the crossings of its sides in the same order.
    const std::array<double, 4> v{unit(r, c), unit(r, c + 1), unit(r + 1, c + 1), unit(r + 1, c)};
    const std::array<LinePoint, 4> p{middle(r, c), middle(r, c + 1), middle(r + 1, c + 1),
                                     middle(r + 1, c)};
    std::array<LinePoint, 4> crossings{};
    size_t count = 0;
    for (size_t i = 0; i < 4; ++i) {
      const size_t j = (i + 1) % 4;
      if ((v[i] >= height) == (v[j] >= height)) continue;
      const double part = (height - v[i]) / (v[j] - v[i]);
      crossings[count++] = {p[i].x + part * (p[j].x - p[i].x), p[i].y + part * (p[j].y - p[i].y)};
    }
    if (count == 2) stroke(canvas, crossings[0], crossings[1], width, colour);
    if (count < 4) return;
    const bool high_middle = (v[0] + v[1] + v[2] + v[3]) / 4 >= height;
    // Crossings 0 … 3 lie on sides 0-1, 1-2, 2-3, 3-0.
    const bool around_first = (v[0] >= height) != high_middle;
    const size_t with = around_first ? 3 : 1;
    stroke(canvas, crossings[0], crossings[with], width, colour);
    stroke(canvas, crossings[2], crossings[around_first ? 1 : 3], width, colour);
  }

  const CellLayout at_;
  std::vector<double> units_;
};

void paint_contours(Canvas& canvas, std::span<const float> numbers, const CellLayout& at,
                    const ColourScale& scale, const FilmOver& how) {
  const Contours contours(numbers, at, scale);
  for (const double share : kContourShares) contours.paint(canvas, share, how.line + 2, kShadow);
  for (const double share : kContourShares) {
    contours.paint(canvas, share, how.line, colormap_at(scale.map(), share));
  }
}

}  // namespace

std::string_view film_mode_name(FilmMode mode) { return kModes[static_cast<size_t>(mode)]; }

std::optional<FilmMode> parse_film_mode(std::string_view name) {
  const auto* const found = std::find(kModes.begin(), kModes.end(), name);
  if (found == kModes.end()) return std::nullopt;
  return static_cast<FilmMode>(found - kModes.begin());
}

std::vector<std::string> film_mode_names() { return {kModes.begin(), kModes.end()}; }

double film_cover(double unit, double opacity) {
  return opacity * (kLeastCover + std::clamp(unit, 0.0, 1.0) * (kMostCover - kLeastCover));
}

Rgb tinted(uint8_t grey, Rgb colour, double cover) { return mixed(grey, colour, cover_of(cover)); }

Canvas film_over(const GreyImage& frame, std::span<const float> numbers, int rows, int columns,
                 const ColourScale& scale, const FilmOver& how) {
  Canvas canvas(frame.width, frame.height, Rgb{});
  paint_frame(canvas, frame);
  const CellLayout at{frame.width, frame.height, rows, columns};
  switch (how.mode) {
    case FilmMode::tint:
      paint_tint(canvas, frame, numbers, at, scale, how);
      break;
    case FilmMode::outline:
      paint_outline(canvas, numbers, at, how);
      break;
    case FilmMode::contour:
      paint_contours(canvas, numbers, at, scale, how);
      break;
  }
  return canvas;
}

double mass_threshold(std::span<const float> numbers, double share) {
  std::vector<float> sorted;
  double sum = 0;
  for (const float number : numbers) {
    if (!(number > 0) || !std::isfinite(number)) continue;
    sorted.push_back(number);
    sum += static_cast<double>(number);
  }
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  double held = 0;
  for (const float number : sorted) {
    held += static_cast<double>(number);
    if (held >= share * sum) return static_cast<double>(number);
  }
  return std::numeric_limits<double>::infinity();
}

double quantile_threshold(std::span<const float> numbers, double share) {
  std::vector<float> finite;
  std::copy_if(numbers.begin(), numbers.end(), std::back_inserter(finite),
               [](float number) { return std::isfinite(number); });
  if (finite.empty()) return std::numeric_limits<double>::infinity();
  const auto at =
      std::min(finite.size() - 1, static_cast<size_t>(share * static_cast<double>(finite.size())));
  std::nth_element(finite.begin(), finite.begin() + static_cast<std::ptrdiff_t>(at), finite.end());
  return static_cast<double>(finite[at]);
}

}  // namespace attnscope
