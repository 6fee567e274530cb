#include "io/pictures/text/font_face.h"

#include <algorithm>
#include <cmath>

#include "io/pictures/text/font_check.h"

// Of this file alone: libraries of the window may bring stb_truetype too, in another version.
#define STBTT_STATIC
#define STB_TRUETYPE_IMPLEMENTATION
#include <stb_truetype.h>

namespace attnscope {

/// Glyphs larger than so many ems are those of a broken font.
constexpr double kMostEms = 32;

struct FontFace::Impl {
  Impl(std::span<const unsigned char> the_file, size_t start)
      : file(the_file), check(FontReader(the_file), start) {}

  stbtt_fontinfo info{};
  std::span<const unsigned char> file;
  FontCheck check;
  int number = 0;
  int units_per_em = 0;

  float scale(double em) const {
    return stbtt_ScaleForMappingEmToPixels(&info, static_cast<float>(em));
  }
  bool can_be_drawn(int glyph) const {
    return info.glyf == 0 || (check.has_truetype() && check.sound_outline(glyph));
  }
};

FontFace::FontFace(std::unique_ptr<const Impl> impl) : impl_(std::move(impl)) {}
FontFace::FontFace(FontFace&&) noexcept = default;
FontFace& FontFace::operator=(FontFace&&) noexcept = default;
FontFace::~FontFace() = default;

std::optional<FontFace> FontFace::of(std::span<const unsigned char> font, int number) {
  // The header of a font or collection, which stb_truetype reads unasked.
  constexpr size_t kHeader = 16;
  if (font.size() < kHeader) return std::nullopt;
  const int count = stbtt_GetNumberOfFonts(font.data());
  if (number >= count) number = 0;
  if (FontReader(font).is(0, "ttcf") && kHeader + 4 * static_cast<size_t>(number) > font.size()) {
    return std::nullopt;
  }
  const int offset = stbtt_GetFontOffsetForIndex(font.data(), number);
  if (offset < 0) return std::nullopt;
  auto impl = std::make_unique<Impl>(font, static_cast<size_t>(offset));
  if (!impl->check.sound_tables()) return std::nullopt;
  if (stbtt_InitFont(&impl->info, font.data(), offset) == 0) return std::nullopt;
  if (!impl->check.sound_letters(static_cast<uint32_t>(impl->info.index_map))) return std::nullopt;
  impl->number = number;
  impl->units_per_em = static_cast<int>(std::lround(1 / impl->scale(1)));
  return FontFace(std::move(impl));
}

std::span<const unsigned char> FontFace::file() const { return impl_->file; }

int FontFace::offset() const { return impl_->info.fontstart; }

int FontFace::number() const { return impl_->number; }

bool FontFace::ordered_outlines() const { return impl_->check.ordered_outlines(); }

int FontFace::glyph(char32_t code) const {
  const int glyph = stbtt_FindGlyphIndex(&impl_->info, static_cast<int>(code));
  return glyph >= 0 && glyph < impl_->check.glyphs() ? glyph : 0;
}

int FontFace::units_per_em() const { return impl_->units_per_em; }

int FontFace::line_height() const {
  int ascent = 0, descent = 0, gap = 0;
  stbtt_GetFontVMetrics(&impl_->info, &ascent, &descent, &gap);
  return ascent - descent;
}

int FontFace::cap_height() const {
  int left = 0, bottom = 0, right = 0, top = 0;
  const int h = glyph(U'H');
  if (impl_->can_be_drawn(h)) {
    stbtt_GetGlyphBox(&impl_->info, h, &left, &bottom, &right, &top);
  }
  return top;
}

int FontFace::advance(int glyph) const {
  int advance = 0;
  // Bearings are not asked for: their list may end early.
  stbtt_GetGlyphHMetrics(&impl_->info, glyph, &advance, nullptr);
  return std::max(0, advance);
}

GlyphCoverage FontFace::draw(int glyph, double em, double shift) const {
  const float scale = impl_->scale(em);
  const auto shift_x = static_cast<float>(shift);
  int right = 0, bottom = 0;
  GlyphCoverage ink;
  if (!impl_->can_be_drawn(glyph)) return ink;
  stbtt_GetGlyphBitmapBoxSubpixel(&impl_->info, glyph, scale, scale, shift_x, 0, &ink.left,
                                  &ink.top, &right, &bottom);
  const double most = kMostEms * std::max(1.0, em);
  if (right < ink.left || right - ink.left > most || bottom < ink.top || bottom - ink.top > most) {
    return {};
  }
  ink.width = right - ink.left;
  ink.height = bottom - ink.top;
  ink.pixels.resize(static_cast<size_t>(ink.width) * static_cast<size_t>(ink.height));
  if (!ink.pixels.empty()) {
    stbtt_MakeGlyphBitmapSubpixel(&impl_->info, ink.pixels.data(), ink.width, ink.height, ink.width,
                                  scale, scale, shift_x, 0, glyph);
  }
  return ink;
}

}  // namespace attnscope
