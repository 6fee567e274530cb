#include "io/pictures/colormap.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "io/pictures/colour_tables.h"

namespace attnscope {
namespace {

constexpr std::array<std::string_view, 7> kNames{"viridis", "cividis", "magma",   "inferno",
                                                 "turbo",   "grey",    "coolwarm"};
constexpr size_t kChoices = 6;  ///< that can be chosen

/// Moreland's polar form of CIELAB: size, angle from the grey axis, hue.
struct Msh {
  double m = 0, s = 0, h = 0;
};

/// CIELAB (D65) as an sRGB pixel.
Rgb rgb_of(const Msh& msh) {
  const double l = msh.m * std::cos(msh.s);
  const double a = msh.m * std::sin(msh.s) * std::cos(msh.h);
  const double b = msh.m * std::sin(msh.s) * std::sin(msh.h);
  const auto cubed = [](double f) {
    return f > 6.0 / 29 ? f * f * f : 3 * (6.0 / 29) * (6.0 / 29) * (f - 4.0 / 29);
  };
  const double fy = (l + 16) / 116;
  const double x = 0.950456 * cubed(fy + a / 500);
  const double y = cubed(fy);
  const double z = 1.088754 * cubed(fy - b / 200);
  const auto channel = [](double linear) {
    const double v =
        linear <= 0.0031308 ? 12.92 * linear : 1.055 * std::pow(linear, 1 / 2.4) - 0.055;
    return static_cast<uint8_t>(std::lround(255 * std::clamp(v, 0.0, 1.0)));
  };
  return {channel(3.2404542 * x - 1.5371385 * y - 0.4985314 * z),
          channel(-0.9692660 * x + 1.8760108 * y + 0.0415560 * z),
          channel(0.0556434 * x - 0.2040259 * y + 1.0572252 * z)};
}

/// From the blue or the red end (0) to the grey of the middle (1). Ends and middle as published:
/// rgb(59, 76, 192), rgb(180, 4, 38), and M = 88 where the saturation is 0.
Rgb coolwarm_half(bool red, double to_middle) {
  constexpr Msh kBlue{80, 1.08, -1.1}, kRed{80, 1.08, 0.5};
  constexpr double kMiddle = 88;
  const Msh& end = red ? kRed : kBlue;
  // Hues turn towards the middle, so that steps look alike near the grey: 1.061 from blue, 0.5 from
  // red.
  const double turn =
      end.s * std::sqrt(kMiddle * kMiddle - end.m * end.m) / (end.m * std::sin(end.s));
  const double hue = end.h > -std::numbers::pi / 3 ? end.h + turn : end.h - turn;
  return rgb_of({end.m + to_middle * (kMiddle - end.m), end.s * (1 - to_middle),
                 end.h + to_middle * (hue - end.h)});
}

const ColormapTable& table_of(Colormap map) {
  switch (map) {
    case Colormap::cividis:
      return kCividis;
    case Colormap::magma:
      return kMagma;
    case Colormap::inferno:
      return kInferno;
    case Colormap::turbo:
      return kTurbo;
    case Colormap::viridis:
    case Colormap::grey:
    case Colormap::coolwarm:
      break;
  }
  return kViridis;
}

}  // namespace

std::string_view colormap_name(Colormap map) { return kNames[static_cast<size_t>(map)]; }

std::optional<Colormap> parse_colormap(std::string_view name) {
  for (size_t i = 0; i < kChoices; ++i) {
    if (kNames[i] == name) return static_cast<Colormap>(i);
  }
  return std::nullopt;
}

std::vector<std::string> colormap_names() { return {kNames.begin(), kNames.begin() + kChoices}; }

Rgb colormap_at(Colormap map, double unit) {
  // Written so that NaN falls to the dark end.
  const double u = unit > 0 ? std::min(unit, 1.0) : 0.0;
  if (map == Colormap::grey) {
    const auto level = static_cast<uint8_t>(std::lround(255 * u));
    return {level, level, level};
  }
  if (map == Colormap::coolwarm) return coolwarm_half(u > 0.5, 1 - std::abs(2 * u - 1));
  const ColormapTable& table = table_of(map);
  const double place = u * static_cast<double>(table.size() - 1);
  const size_t i = std::min(static_cast<size_t>(place), table.size() - 2);
  const double t = place - static_cast<double>(i);
  const auto channel = [&](int shift) {
    const auto from = static_cast<double>(table[i] >> shift & 0xff);
    const auto to = static_cast<double>(table[i + 1] >> shift & 0xff);
    return static_cast<uint8_t>(std::lround(from + t * (to - from)));
  };
  return {channel(16), channel(8), channel(0)};
}

}  // namespace attnscope
