#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

namespace attnscope {

class FontFace;
class SystemFonts;

// One line of UTF-8 text as pixels. Sizes are heights of the capitals in pixels. Letters come from
// the embedded font, so that these look the same everywhere; those that it lacks from the fonts of
// the system; where that has none, a box with the character's code in hexadecimal stands for them.
// Letters stand side by side as they are written: what scripts such as Arabic or Devanagari need
// beyond that (joining, reordering, right to left) does not happen. Thread-safe.

/// How dark ink is at most; fewer levels than a byte has keep pictures small, and letters smooth.
constexpr int kFullInk = 15;

/// The ink of one letter, [height, width] of 0 … kFullInk. (x, y): from the text's beginning and
/// the capitals' upper edge to the right and down.
struct LetterInk {
  int x = 0, y = 0, width = 0, height = 0;
  std::vector<uint8_t> levels;
};

/// `others` are asked for letters that the embedded font lacks; null: the installed fonts. Letters
/// without ink, such as spaces, are left out.
std::vector<LetterInk> text_ink(std::string_view text, int cap_height,
                                const SystemFonts* others = nullptr);
/// The ink of those letters alone that `chosen` tells of.
std::vector<LetterInk> text_ink_of(std::string_view text, int cap_height,
                                   const std::function<bool(const FontFace*)>& chosen,
                                   const SystemFonts* others = nullptr);
/// A letter in its place, as text_ink() draws it: pixels from the text's beginning.
struct PlacedLetter {
  char32_t code = 0;
  const FontFace* face = nullptr;  ///< null: no font has it, and a box with its code stands for it
  double begin = 0, end = 0;
};
std::vector<PlacedLetter> placed_letters(std::string_view text, int cap_height,
                                         const SystemFonts* others = nullptr);
/// Pixels of the em of fonts whose letters stand in a text with such capitals.
double em_pixels(int cap_height);
/// Pixels that the text takes.
int text_width(std::string_view text, int cap_height, const SystemFonts* others = nullptr);
/// Bytes of the longest beginning of the text, in whole characters, that takes at most `width`
/// pixels.
size_t fitting_bytes(std::string_view text, int cap_height, int width,
                     const SystemFonts* others = nullptr);

}  // namespace attnscope
