#include "io/pictures/colormap.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "io/pictures/colour_tables.h"

namespace attnscope {
namespace {

constexpr std::array<std::string_view, 6> kNames{"viridis", "cividis", "magma",
                                                 "inferno", "turbo",   "grey"};

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
