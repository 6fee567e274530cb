#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace attnscope {

/// The pixels that a glyph covers, [height, width], 0 … 255. `left` and `top` count from the pen's
/// place on the base line, x to the right and y down.
struct GlyphCoverage {
  int left = 0, top = 0, width = 0, height = 0;
  std::vector<uint8_t> pixels;
};

/// One face of a TrueType or OpenType font in memory, read by stb_truetype, which checks no offset
/// of the file. So its tables, its table of letters and each TrueType outline are checked before
/// (font_check.h): a damaged or half-copied font is no font, a damaged outline draws nothing. Of
/// PostScript outlines (CFF) only the table's place is checked; offsets that are wrong within it
/// can still lead outside the file. So the font must be one that somebody vouches for: the embedded
/// one, or one that is installed. The same bytes give the same pixels on every machine. Immutable;
/// thread-safe.
class FontFace {
 public:
  /// Face `number` of a font or a collection of fonts (.ttc), the first one where it has fewer;
  /// none where these bytes are no font with outlines. Borrows the bytes.
  static std::optional<FontFace> of(std::span<const unsigned char> font, int number);
  FontFace(FontFace&&) noexcept;
  FontFace& operator=(FontFace&&) noexcept;
  ~FontFace();

  /// The font file that it is of, and where in it its table of tables begins.
  std::span<const unsigned char> file() const;
  int offset() const;
  /// The number within its file.
  int number() const;
  /// True of TrueType outlines that lie one behind the other in the file.
  bool ordered_outlines() const;
  /// The glyph of a character; 0: the face has none.
  int glyph(char32_t code) const;
  /// Lengths below are in font units, of which the em has so many.
  int units_per_em() const;
  /// From the ascenders' top to the descenders' foot.
  int line_height() const;
  /// Height of the capitals without a rounded top.
  int cap_height() const;
  /// How far the pen moves.
  int advance(int glyph) const;
  /// Draws a glyph without hinting, the em being `em` pixels, its pen `shift` (0 … 1) pixels right
  /// of a pixel's left edge.
  GlyphCoverage draw(int glyph, double em, double shift) const;

 private:
  struct Impl;
  explicit FontFace(std::unique_ptr<const Impl> impl);
  std::unique_ptr<const Impl> impl_;
};

}  // namespace attnscope
