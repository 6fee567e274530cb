#include "io/pictures/text/text_ink.h"

#include <algorithm>
#include <cmath>

#include "io/files/utf8.h"
#include "io/pictures/text/embedded_font.h"
#include "io/pictures/text/system_fonts.h"

namespace attnscope {
namespace {

/// Pens move in parts of a pixel, in whole numbers: every machine rounds them alike.
constexpr int64_t kPenParts = 64;
/// Letters are drawn at one of so many places within a pixel.
constexpr int64_t kPlaces = 4;

const FontFace& embedded_face() {
  static const FontFace face = FontFace::of(embedded_font(), 0).value();
  return face;
}

int64_t advance_parts(const FontFace& face, int glyph, int cap_height) {
  const FontFace& plain = embedded_face();
  const int64_t parts = kPenParts * cap_height * plain.units_per_em() * face.advance(glyph);
  const int64_t units = int64_t{plain.cap_height()} * face.units_per_em();
  return (2 * parts + units) / (2 * units);
}

/// Marks that say how their neighbours are written, and take no place themselves.
bool is_invisible(char32_t code) {
  return code == 0xad || (code >= 0x200b && code <= 0x200f) || (code >= 0x202a && code <= 0x202e) ||
         (code >= 0x2060 && code <= 0x2064) || (code >= 0xfe00 && code <= 0xfe0f) ||
         code == 0xfeff || (code >= 0xe0100 && code <= 0xe01ef);
}

/// A glyph whose pen stands at `pen` on a base line `cap_height` below the text's upper edge.
LetterInk glyph_ink(const FontFace& face, int glyph, int64_t pen, int cap_height) {
  const int64_t places = (pen * kPlaces + kPenParts / 2) / kPenParts;
  const double shift = static_cast<double>(places % kPlaces) / kPlaces;
  GlyphCoverage drawn = face.draw(glyph, em_pixels(cap_height), shift);
  for (uint8_t& pixel : drawn.pixels) {
    pixel = static_cast<uint8_t>((pixel * kFullInk + 127) / 255);
  }
  return {static_cast<int>(places / kPlaces) + drawn.left, cap_height + drawn.top, drawn.width,
          drawn.height, std::move(drawn.pixels)};
}

/// The box that stands for a letter which no font has: its code in two rows of digits.
class CodeBox {
 public:
  CodeBox(char32_t code, int cap_height)
      : code_(code),
        columns_(code > 0xffff ? 3 : 2),
        line_(std::max(1, cap_height / 14)),
        gap_(std::max(1, cap_height / 7)),
        digit_height_(std::max(1, cap_height * 3 / 7)),
        digit_width_(digit_height_ + 1),
        width_(columns_ * digit_width_ + gap_ + 2 * line_),
        height_(2 * digit_height_ + 3 * gap_ + 2 * line_),
        top_((cap_height - height_) / 2) {}

  /// Half a gap is left free on either side.
  int64_t advance_parts() const { return kPenParts * (width_ + gap_); }

  LetterInk ink(int64_t pen) const {
    LetterInk box{static_cast<int>(pen / kPenParts) + gap_ / 2, top_, width_, height_, {}};
    box.levels.assign(static_cast<size_t>(width_) * static_cast<size_t>(height_), kFullInk);
    for (int y = line_; y < height_ - line_; ++y) {
      for (int x = line_; x < width_ - line_; ++x) at(box, x, y) = 0;
    }
    for (int row = 0; row < 2; ++row) {
      for (int column = 0; column < columns_; ++column) draw_digit(box, row, column);
    }
    return box;
  }

 private:
  static uint8_t& at(LetterInk& ink, int x, int y) {
    return ink
        .levels[static_cast<size_t>(y) * static_cast<size_t>(ink.width) + static_cast<size_t>(x)];
  }

  void draw_digit(LetterInk& box, int row, int column) const {
    const int after = (2 - row) * columns_ - 1 - column;  // digits behind this one
    const char32_t value = code_ >> (4 * after) & 15;
    const FontFace& face = embedded_face();
    const int glyph = face.glyph(value < 10 ? U'0' + value : U'A' + value - 10);
    LetterInk digit = glyph_ink(face, glyph, 0, digit_height_);
    const int left = line_ + gap_ / 2 + column * digit_width_ + (digit_width_ - digit.width) / 2;
    const int top = line_ + gap_ + row * (digit_height_ + gap_) + digit.y;
    for (int y = 0; y < digit.height; ++y) {
      for (int x = 0; x < digit.width; ++x) {
        uint8_t& level = at(box, left + x, top + y);
        level = std::max(level, at(digit, x, y));
      }
    }
  }

  char32_t code_;
  int columns_, line_, gap_, digit_height_, digit_width_, width_, height_, top_;
};

struct Letter {
  char32_t code = 0;
  const FontFace* face = nullptr;  ///< null: no font has it
  int glyph = 0;
  int64_t begin = 0, end = 0;  ///< of the pen, in parts of a pixel
  size_t bytes = 0;            ///< of the text up to its end
};

/// Calls see(letter) for each letter until that returns false.
template <class See>
void for_each_letter(std::string_view text, int cap_height, const SystemFonts* others,
                     const See& see) {
  Letter letter;
  for (size_t at = 0; at < text.size();) {
    letter.code = next_character(text, at);
    letter.bytes = at;
    if (is_invisible(letter.code)) continue;
    if (letter.code == U'\t') letter.code = U' ';
    letter.face = &embedded_face();
    letter.glyph = letter.face->glyph(letter.code);
    if (letter.glyph == 0) {
      const SystemFonts& fonts = others != nullptr ? *others : SystemFonts::installed();
      const SystemFont* font = fonts.with_letter(letter.code);
      letter.face = font != nullptr ? &*font->face : nullptr;
      if (letter.face != nullptr) letter.glyph = letter.face->glyph(letter.code);
    }
    letter.begin = letter.end;
    letter.end += letter.face != nullptr ? advance_parts(*letter.face, letter.glyph, cap_height)
                                         : CodeBox(letter.code, cap_height).advance_parts();
    if (!see(letter)) return;
  }
}

/// Whole pixels that hold so many parts.
int pixels(int64_t parts) { return static_cast<int>((parts + kPenParts - 1) / kPenParts); }

}  // namespace

/// Fonts of other scripts get the em of the embedded one.
double em_pixels(int cap_height) {
  const FontFace& plain = embedded_face();
  return static_cast<double>(cap_height) * plain.units_per_em() / plain.cap_height();
}

std::vector<LetterInk> text_ink(std::string_view text, int cap_height, const SystemFonts* others) {
  return text_ink_of(
      text, cap_height, [](const FontFace*) { return true; }, others);
}

std::vector<LetterInk> text_ink_of(std::string_view text, int cap_height,
                                   const std::function<bool(const FontFace*)>& chosen,
                                   const SystemFonts* others) {
  std::vector<LetterInk> inks;
  for_each_letter(text, cap_height, others, [&](const Letter& letter) {
    if (!chosen(letter.face)) return true;
    LetterInk ink = letter.face != nullptr
                        ? glyph_ink(*letter.face, letter.glyph, letter.begin, cap_height)
                        : CodeBox(letter.code, cap_height).ink(letter.begin);
    if (!ink.levels.empty()) inks.push_back(std::move(ink));
    return true;
  });
  return inks;
}

std::vector<PlacedLetter> placed_letters(std::string_view text, int cap_height,
                                         const SystemFonts* others) {
  std::vector<PlacedLetter> letters;
  for_each_letter(text, cap_height, others, [&](const Letter& letter) {
    letters.push_back({letter.code, letter.face,
                       static_cast<double>(letter.begin) / static_cast<double>(kPenParts),
                       static_cast<double>(letter.end) / static_cast<double>(kPenParts)});
    return true;
  });
  return letters;
}

int text_width(std::string_view text, int cap_height, const SystemFonts* others) {
  int64_t end = 0;
  for_each_letter(text, cap_height, others, [&](const Letter& letter) {
    end = letter.end;
    return true;
  });
  return pixels(end);
}

size_t fitting_bytes(std::string_view text, int cap_height, int width, const SystemFonts* others) {
  size_t bytes = 0;
  for_each_letter(text, cap_height, others, [&](const Letter& letter) {
    if (pixels(letter.end) > width) return false;
    bytes = letter.bytes;
    return true;
  });
  return bytes;
}

}  // namespace attnscope
