#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/pictures/colormap.h"

namespace attnscope {

inline constexpr double kMillimetresAnInch = 25.4;

/// The looks that pictures come in: as on a screen; for print; large, to be projected.
enum class StyleName : uint8_t { dark, paper, slide };
std::optional<StyleName> parse_style_name(std::string_view name);
std::vector<std::string> style_names();

/// What all pictures share, so that they look like one tool's: the data has the colours, the rest
/// is grey. A value; lengths are whole pixels of the output. Made by picture_style(); by itself it
/// is the dark one.
struct PictureStyle {
  StyleName name = StyleName::dark;
  Rgb background{0x10, 0x12, 0x14};
  Rgb text{0xd7, 0xdd, 0xe3};
  Rgb quiet_text{0x84, 0x8d, 0x97};
  Rgb rule{0x2a, 0x30, 0x36};
  /// A cell whose weight is 0 on a log scale: unlike the low end of any colour map.
  Rgb masked_cell{0x07, 0x08, 0x09};
  /// Lines in a cell that has no value.
  Rgb empty_hatch{0x3c, 0x44, 0x4d};
  /// Words about the query, and about keys.
  Rgb query{0x4a, 0xa8, 0xff};
  Rgb key{0xff, 0x9f, 0x43};
  /// Lines between a map's frames, and the bands beside its edges: text, frames in turn.
  Rgb frame_line{0x3c, 0x44, 0x4d};
  Rgb text_band{0xb4, 0xbd, 0xc7};
  Rgb even_band{0x4c, 0x55, 0x5f};
  Rgb odd_band{0x2a, 0x30, 0x36};

  int margin = 32;
  /// A map of one row still has a bar that can be read.
  int least_bar = 160;
  /// Sizes of text: pixels of its capitals.
  int small_height = 7;
  int text_height = 14;
  int title_height = 21;
  /// From one line of text to what stands below it.
  int text_gap = 12;
  /// Pixels of the output in an inch of the page.
  double dpi = 96;

  /// Exactly how wide the page is, and how high at most; 0: as the picture comes out.
  int page_width = 0, page_height = 0;
  /// A side of a cell; 0: what suits the picture.
  int cell = 0;
  /// Colour bars and keys of curves.
  bool legend = true;
  /// Stands in place of the picture's title and lines; empty text: nothing does.
  std::optional<std::string> title;
  /// Pages list their texts and lines for a writer instead of drawing them into their pixels.
  bool vector = false;

  /// A length of the dark style at this one's size of text; at least 1 of what is not 0.
  int px(int length) const;
  /// The colour of curve i: those of Okabe and Ito that stand out from the background, over again
  /// after the last one.
  Rgb curve(size_t i) const;
};

/// The style of that name; dpi 0 and font_size 0 (points) are its own: dark 96 dpi and 14.4 points,
/// paper 300 dpi and 7 points, slide 144 dpi and 18 points.
PictureStyle picture_style(StyleName name, double dpi = 0, double font_size = 0);

}  // namespace attnscope
