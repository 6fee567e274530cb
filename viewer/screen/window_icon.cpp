#include "viewer/screen/window_icon.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace attnscope {
namespace {

constexpr int kTokens = 6;
/// Shares of the side: the empty edge, and the radius of the corners.
constexpr double kEdge = 1.0 / 32, kCorner = 3.0 / 16;

/// From dark to bright.
constexpr std::array<std::array<double, 3>, 3> kColours{
    {{58, 28, 92}, {33, 145, 140}, {253, 231, 37}}};

double weight(int query, int key) {
  if (key == query) return 1;
  const double near = std::exp(-std::abs(query - key) / 0.9);
  return std::max(near, key == 0 ? 0.55 : 0.0);
}

uint8_t blended(double weight, size_t channel) {
  const double at = std::clamp(weight, 0.0, 1.0) * 2;
  const auto low = static_cast<size_t>(std::min(1.0, std::floor(at)));
  const double share = at - static_cast<double>(low);
  return static_cast<uint8_t>(
      std::lround(kColours[low][channel] * (1 - share) + kColours[low + 1][channel] * share));
}

/// True within the square with round corners; from 0 to 1 across.
bool is_inside(double x, double y) {
  const double low = kEdge + kCorner, high = 1 - low;
  const double dx = x - std::clamp(x, low, high), dy = y - std::clamp(y, low, high);
  return dx * dx + dy * dy <= kCorner * kCorner;
}

}  // namespace

std::vector<uint8_t> window_icon(int side) {
  std::vector<uint8_t> pixels(static_cast<size_t>(side) * static_cast<size_t>(side) * 4);
  size_t at = 0;
  for (int row = 0; row < side; ++row) {
    for (int col = 0; col < side; ++col, at += 4) {
      const double x = (col + 0.5) / side, y = (row + 0.5) / side;
      if (!is_inside(x, y)) continue;
      const auto token = [](double share) {
        return std::min(kTokens - 1, static_cast<int>(share * kTokens));
      };
      for (size_t channel = 0; channel < 3; ++channel) {
        pixels[at + channel] = blended(weight(token(y), token(x)), channel);
      }
      pixels[at + 3] = 255;
    }
  }
  return pixels;
}

}  // namespace attnscope
