#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace attnscope {

/// A letter of the built-in font: `rows` from the top, the leftmost column in bit 4. Capitals fill
/// rows 0–6; rows 7 and 8 are below the base line.
struct Glyph {
  int width = 0;
  std::array<uint8_t, 9> rows{};

  bool dot(int x, int y) const { return (rows[static_cast<size_t>(y)] >> (4 - x) & 1) != 0; }
};

constexpr int kGlyphHeight = 9;
constexpr int kCapHeight = 7;
/// Empty columns between two letters.
constexpr int kLetterSpace = 1;

/// The letters of UTF-8 text: printable ASCII and · × – …; others become a question mark.
std::vector<Glyph> text_glyphs(std::string_view text);
/// Columns that the text takes at scale 1.
int text_columns(std::string_view text);

}  // namespace attnscope
