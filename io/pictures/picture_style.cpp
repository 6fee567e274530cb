#include "io/pictures/picture_style.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace attnscope {
namespace {

constexpr std::array<std::string_view, 3> kStyleNames{"dark", "paper", "slide"};
/// Capitals of the embedded font are so much of its em.
constexpr double kCapitals = 0.729;
constexpr double kPointsAnInch = 72;
/// The dark style's text, of which its other lengths are.
constexpr int kDarkTextHeight = 14;

// Okabe and Ito, "Color Universal Design" (2008).
constexpr std::array kOnDark{Rgb{0x56, 0xb4, 0xe9}, Rgb{0xe6, 0x9f, 0x00}, Rgb{0x00, 0x9e, 0x73},
                             Rgb{0xf0, 0xe4, 0x42}, Rgb{0xcc, 0x79, 0xa7}, Rgb{0xd5, 0x5e, 0x00},
                             Rgb{0xff, 0xff, 0xff}};
constexpr std::array kOnLight{Rgb{0x00, 0x72, 0xb2}, Rgb{0xd5, 0x5e, 0x00}, Rgb{0x00, 0x9e, 0x73},
                              Rgb{0xcc, 0x79, 0xa7}, Rgb{0xe6, 0x9f, 0x00}, Rgb{0x56, 0xb4, 0xe9},
                              Rgb{0x00, 0x00, 0x00}};

/// White ground and black letters: what prints, and what a projector shows in a room with light.
PictureStyle light_style(StyleName name) {
  PictureStyle style;
  style.name = name;
  style.background = {0xff, 0xff, 0xff};
  style.text = {0x00, 0x00, 0x00};
  style.quiet_text = {0x55, 0x5b, 0x61};
  style.rule = {0xc4, 0xc8, 0xcc};
  style.masked_cell = {0xe9, 0xe9, 0xec};
  style.empty_hatch = {0xa8, 0xac, 0xb1};
  style.query = {0x00, 0x5f, 0xa8};
  style.key = {0x9c, 0x4a, 0x00};
  style.frame_line = {0xff, 0xff, 0xff};
  style.text_band = {0x30, 0x34, 0x38};
  style.even_band = {0x8c, 0x92, 0x98};
  style.odd_band = {0xc4, 0xc8, 0xcc};
  return style;
}

}  // namespace

std::optional<StyleName> parse_style_name(std::string_view name) {
  const auto* const found = std::find(kStyleNames.begin(), kStyleNames.end(), name);
  if (found == kStyleNames.end()) return std::nullopt;
  return static_cast<StyleName>(found - kStyleNames.begin());
}

std::vector<std::string> style_names() { return {kStyleNames.begin(), kStyleNames.end()}; }

int PictureStyle::px(int length) const {
  const int scaled = (2 * length * text_height + kDarkTextHeight) / (2 * kDarkTextHeight);
  return length > 0 ? std::max(1, scaled) : scaled;
}

Rgb PictureStyle::curve(size_t i) const {
  const auto& colours = name == StyleName::dark ? kOnDark : kOnLight;
  return colours[i % colours.size()];
}

PictureStyle picture_style(StyleName name, double dpi, double font_size) {
  PictureStyle style = name == StyleName::dark ? PictureStyle() : light_style(name);
  const double own_dpi = name == StyleName::dark ? 96 : name == StyleName::paper ? 300 : 144;
  style.dpi = dpi > 0 ? dpi : own_dpi;
  if (name == StyleName::dark && style.dpi == own_dpi && font_size <= 0) return style;
  const double own_size = name == StyleName::dark ? 14.4 : name == StyleName::paper ? 7 : 18;
  const double points = font_size > 0 ? font_size : own_size;
  const double em = points * style.dpi / kPointsAnInch;
  style.text_height = std::max(1, static_cast<int>(std::lround(em * kCapitals)));
  // Journals have captions: a title is hardly larger than its lines.
  const double title = name == StyleName::paper ? 1.15 : 1.5;
  style.title_height = std::max(1, static_cast<int>(std::lround(title * style.text_height)));
  style.small_height = std::max(1, style.text_height / 2);
  style.margin = style.px(name == StyleName::paper ? 6 : 32);
  style.least_bar = style.px(style.least_bar);
  style.text_gap = style.px(style.text_gap);
  return style;
}

}  // namespace attnscope
