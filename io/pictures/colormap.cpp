#include "io/pictures/colormap.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace attnscope {
namespace {

constexpr size_t kPoints = 17;
/// Colours at 0, 1/16 … 1 as 0xRRGGBB.
using ControlPoints = std::array<uint32_t, kPoints>;

// viridis, magma, inferno by S. van der Walt and N. Smith, cividis by J. Nuñez, C. Anderton and
// R. Renslow (CC0); turbo by A. Mikhailov (Google).
constexpr ControlPoints kViridis{0x440154, 0x48186a, 0x472d7b, 0x424086, 0x3b528b, 0x33638d,
                                 0x2c728e, 0x26818e, 0x21908c, 0x1f9f88, 0x28ae80, 0x3ebc74,
                                 0x5dc963, 0x82d34c, 0xabdc32, 0xd5e21a, 0xfde725};
constexpr ControlPoints kCividis{0x00224e, 0x002e6a, 0x1a386f, 0x32436d, 0x434e6c, 0x52596d,
                                 0x61656f, 0x6f7073, 0x7c7b78, 0x8b8778, 0x9b9376, 0xaba072,
                                 0xbbad6c, 0xccba64, 0xddc958, 0xefd748, 0xfee838};
constexpr ControlPoints kMagma{0x000004, 0x0a0822, 0x1d1146, 0x36106a, 0x50127c, 0x691c81,
                               0x822681, 0x9c2e7f, 0xb63779, 0xcf4170, 0xe65163, 0xf5695c,
                               0xfb8761, 0xfea571, 0xfec387, 0xfde0a2, 0xfcfdbf};
constexpr ControlPoints kInferno{0x000004, 0x0b0724, 0x210c4a, 0x3c0965, 0x57106d, 0x70196e,
                                 0x89226a, 0xa32b61, 0xbb3755, 0xd14644, 0xe35932, 0xf1711e,
                                 0xf98d0a, 0xfcab0f, 0xf9ca32, 0xf2e865, 0xfcffa4};
constexpr ControlPoints kTurbo{0x30123b, 0x4040a1, 0x466be3, 0x4293ff, 0x29bbec, 0x18dcc3,
                               0x31f299, 0x6bfd64, 0xa3fd3c, 0xcced34, 0xedd03a, 0xfdae35,
                               0xfb8022, 0xec520f, 0xd23105, 0xac1701, 0x7a0403};

constexpr std::array<std::string_view, 6> kNames{"viridis", "cividis", "magma",
                                                 "inferno", "turbo",   "grey"};

/// The curve through four neighbouring points (Catmull–Rom), between p1 and p2.
double between(double p0, double p1, double p2, double p3, double t) {
  const double a = -p0 + 3 * p1 - 3 * p2 + p3;
  const double b = 2 * p0 - 5 * p1 + 4 * p2 - p3;
  return p1 + 0.5 * t * (p2 - p0 + t * (b + t * a));
}

uint8_t channel_at(const ControlPoints& points, int shift, size_t i, double t) {
  const auto value = [&](size_t n) { return static_cast<double>((points[n] >> shift) & 0xff); };
  // Beyond the ends the curve goes straight on.
  const double before = i > 0 ? value(i - 1) : 2 * value(0) - value(1);
  const double after = i + 2 < kPoints ? value(i + 2) : 2 * value(kPoints - 1) - value(kPoints - 2);
  const double result = between(before, value(i), value(i + 1), after, t);
  return static_cast<uint8_t>(std::lround(std::clamp(result, 0.0, 255.0)));
}

const ControlPoints& points_of(Colormap map) {
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
      break;
  }
  return kViridis;
}

}  // namespace

std::string_view colormap_name(Colormap map) { return kNames[static_cast<size_t>(map)]; }

std::optional<Colormap> parse_colormap(std::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<Colormap>(i);
  }
  return std::nullopt;
}

std::vector<std::string> colormap_names() { return {kNames.begin(), kNames.end()}; }

Rgb colormap_at(Colormap map, double unit) {
  // Written so that NaN falls to the dark end.
  const double u = unit > 0 ? std::min(unit, 1.0) : 0.0;
  if (map == Colormap::grey) {
    const auto level = static_cast<uint8_t>(std::lround(255 * u));
    return {level, level, level};
  }
  const double scaled = u * (kPoints - 1);
  const size_t i = std::min(static_cast<size_t>(scaled), kPoints - 2);
  const double t = scaled - static_cast<double>(i);
  const ControlPoints& points = points_of(map);
  return {channel_at(points, 16, i, t), channel_at(points, 8, i, t), channel_at(points, 0, i, t)};
}

}  // namespace attnscope
