#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "io/pictures/text/font_face.h"

namespace attnscope {

/// A TrueType font of some letters of another, for a file that brings its fonts along. Letter i of
/// `codes` is glyph i + 1; the same outlines are there once for each letter that has them.
struct FontSubset {
  std::vector<char32_t> codes;
  std::vector<uint16_t> advances;  ///< of the codes, in units of the em
  std::vector<uint8_t> bytes;      ///< the font
  int units_per_em = 0;
  int ascent = 0, descent = 0;  ///< in these units; descent is below 0
  int x_min = 0, y_min = 0, x_max = 0, y_max = 0;
};

/// True of a font with TrueType outlines, of which there can be a subset. Fonts with PostScript
/// outlines (.otf) are none, nor are damaged ones with outlines that lie over each other: each
/// letter could bring along all of them.
bool has_truetype_outlines(const FontFace& face);

/// The subset of these letters (ascending, without repetition), which the face has. Where one
/// outline stands for so many letters that those of the subset would take more than twice the
/// bytes of all that the font has, the last letters are empty. The format:
/// OpenType 1.9, tables cmap (format 12), glyf, head, hhea, hmtx, loca, maxp, name, OS/2, post.
FontSubset make_font_subset(const FontFace& face, std::span<const char32_t> codes);

}  // namespace attnscope
