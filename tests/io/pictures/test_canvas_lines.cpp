#include <algorithm>
#include <cmath>
#include <vector>

#include "io/pictures/canvas.h"
#include "tests/support/catch.h"

using namespace attnscope;

namespace {

/// Cover of a pixel by a line, 0 … 255: its centre's distance from the nearest piece.
long cover_of(double x, double y, const std::vector<PixelPoint>& points, double width) {
  double nearest = 1e9;
  for (size_t i = 0; i < points.size(); ++i) {
    const PixelPoint a = points[i], b = points[std::min(i + 1, points.size() - 1)];
    const double dx = b.x - a.x, dy = b.y - a.y, square = dx * dx + dy * dy;
    const double along =
        square > 0 ? std::clamp(((x - a.x) * dx + (y - a.y) * dy) / square, 0.0, 1.0) : 0;
    nearest = std::min(nearest, std::hypot(a.x + along * dx - x, a.y + along * dy - y));
  }
  return std::lround(255 * std::clamp(width / 2 + 0.5 - nearest, 0.0, 1.0));
}

}  // namespace

TEST_CASE("a line covers the pixels that are near it, within the page and across its edges") {
  const std::vector<std::vector<PixelPoint>> lines{
      {{20, 30}, {60, 12.5}, {70.3, 44}, {31, 22}},  // crosses itself
      {{50.25, 25.75}},                              // a dot
      {{-30, 10}, {140, 45}},
      {{-9, -9}, {-3, 70}, {130, 70}},  // outside but for its ends' width
      {{0, 0}, {0, 59}},
      {{99.5, 59.5}},
      {{-50, -50}, {-40, -40}},
      {{300, 20}, {310, 25}},
      {{10, 200}, {50, 300}},
  };
  for (size_t i = 0; i < lines.size(); ++i) {
    for (const double width : {0.5, 1.0, 4.0, 17.0}) {
      INFO("line " << i << ", width " << width);
      Canvas canvas(100, 60, Rgb{0, 100, 255});
      canvas.polyline(lines[i], width, Rgb{255, 100, 0});
      int wrong = 0;
      for (int y = 0; y < 60; ++y) {
        for (int x = 0; x < 100; ++x) {
          const long cover = cover_of(x + 0.5, y + 0.5, lines[i], width);
          const Rgb c = canvas.at(x, y);
          wrong += std::abs(c.r - cover) > 1 || std::abs(255 - c.b - cover) > 1 || c.g != 100;
        }
      }
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("a line of no points draws nothing") {
  Canvas canvas(10, 10, Rgb{1, 2, 3});
  canvas.polyline({}, 4, Rgb{});
  CHECK(canvas.at(5, 5) == Rgb{1, 2, 3});
}
