#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace attnscope {

/// A pixel, sRGB.
struct Rgb {
  uint8_t r = 0, g = 0, b = 0;
  friend constexpr bool operator==(Rgb, Rgb) = default;
};

/// Colour maps, dark to bright (turbo: blue to red). All but turbo rise evenly in lightness;
/// cividis looks alike to people with and without red-green colour blindness.
/// Coolwarm is for differences alone, and no choice: it runs from blue over a light grey in its
/// middle to red.
enum class Colormap : uint8_t { viridis, cividis, magma, inferno, turbo, grey, coolwarm };

std::string_view colormap_name(Colormap map);
std::optional<Colormap> parse_colormap(std::string_view name);
/// Of every colour map that can be chosen.
std::vector<std::string> colormap_names();

/// The colour at `unit` in 0…1; beyond that the ends, NaN like 0. Entry i of a published table of
/// 256 colours (colour_tables.h) stands at i/255; between two entries the colours run evenly.
/// Coolwarm is computed as it was published: Moreland, Diverging Color Maps for Scientific
/// Visualization, 2009.
Rgb colormap_at(Colormap map, double unit);

}  // namespace attnscope
