#include <cmath>
#include <set>

#include "io/pictures/colormap.h"
#include "io/pictures/colour_tables.h"
#include "tests/support/catch.h"

using namespace attnscope;

namespace {

uint32_t hex(Rgb c) { return uint32_t{c.r} << 16 | uint32_t{c.g} << 8 | c.b; }

constexpr std::array kMaps{Colormap::viridis, Colormap::cividis, Colormap::magma,
                           Colormap::inferno, Colormap::turbo,   Colormap::grey};

}  // namespace

TEST_CASE("the map of differences is the published one, grey in the middle, and no choice") {
  // Moreland's table of coolwarm, of 33 colours.
  struct Case {
    double unit;
    Rgb colour;
  };
  for (const Case& c :
       {Case{0, {59, 76, 192}}, Case{0.25, {141, 176, 254}}, Case{0.5, {221, 221, 221}},
        Case{0.75, {244, 154, 123}}, Case{1, {180, 4, 38}}}) {
    const Rgb got = colormap_at(Colormap::coolwarm, c.unit);
    INFO("at " << c.unit << ": " << int{got.r} << ", " << int{got.g} << ", " << int{got.b});
    CHECK(std::abs(int{got.r} - c.colour.r) <= 3);
    CHECK(std::abs(int{got.g} - c.colour.g) <= 3);
    CHECK(std::abs(int{got.b} - c.colour.b) <= 3);
  }
  CHECK_FALSE(parse_colormap("coolwarm"));
  CHECK(colormap_name(Colormap::coolwarm) == "coolwarm");
}

TEST_CASE("colour maps are the published ones") {
  struct Case {
    Colormap map;
    int entry;
    uint32_t colour;
  };
  // From the tables as matplotlib 3.11 has them, 0…1 times 255 rounded.
  for (const Case& c :
       {Case{Colormap::viridis, 0, 0x440154}, Case{Colormap::viridis, 1, 0x440256},
        Case{Colormap::viridis, 102, 0x2a788e}, Case{Colormap::viridis, 128, 0x21918c},
        Case{Colormap::viridis, 255, 0xfde725}, Case{Colormap::cividis, 0, 0x00224e},
        Case{Colormap::cividis, 18, 0x002f6d}, Case{Colormap::cividis, 200, 0xc4b468},
        Case{Colormap::cividis, 255, 0xfee838}, Case{Colormap::magma, 0, 0x000004},
        Case{Colormap::magma, 150, 0xd9466b}, Case{Colormap::magma, 255, 0xfcfdbf},
        Case{Colormap::inferno, 60, 0x510e6c}, Case{Colormap::inferno, 255, 0xfcffa4},
        Case{Colormap::turbo, 0, 0x30123b}, Case{Colormap::turbo, 90, 0x22ebaa},
        Case{Colormap::turbo, 255, 0x7a0403}, Case{Colormap::grey, 51, 0x333333}}) {
    INFO(colormap_name(c.map) << " " << c.entry);
    CHECK(hex(colormap_at(c.map, c.entry / 255.0)) == c.colour);
  }
}

TEST_CASE("every entry of a table stands at its place, and colours between two are between them") {
  const std::array<const ColormapTable*, 5> tables{&kViridis, &kCividis, &kMagma, &kInferno,
                                                   &kTurbo};
  for (size_t m = 0; m < tables.size(); ++m) {
    const ColormapTable& table = *tables[m];
    CHECK(std::set<uint32_t>(table.begin(), table.end()).size() > 240);
    int wrong = 0, outside = 0;
    for (size_t i = 0; i < table.size(); ++i) {
      wrong += hex(colormap_at(kMaps[m], static_cast<double>(i) / 255)) != table[i];
      if (i + 1 == table.size()) continue;
      const Rgb middle = colormap_at(kMaps[m], (static_cast<double>(i) + 0.5) / 255);
      for (const int shift : {16, 8, 0}) {
        const auto a = static_cast<int>(table[i] >> shift & 0xff);
        const auto b = static_cast<int>(table[i + 1] >> shift & 0xff);
        const auto c = static_cast<int>(hex(middle) >> shift & 0xff);
        outside += std::abs(2 * c - a - b) > 1;
      }
    }
    INFO(colormap_name(kMaps[m]));
    CHECK(wrong == 0);
    CHECK(outside == 0);
  }
}

TEST_CASE("colour maps have names, and take any number") {
  for (const Colormap map : kMaps) {
    CHECK(parse_colormap(colormap_name(map)) == map);
    CHECK(colormap_at(map, -3) == colormap_at(map, 0));
    CHECK(colormap_at(map, 7) == colormap_at(map, 1));
    CHECK(colormap_at(map, std::nan("")) == colormap_at(map, 0));
  }
  CHECK_FALSE(parse_colormap("jet").has_value());
}
