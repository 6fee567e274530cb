#pragma once

#include "io/pictures/text/font_reader.h"

namespace attnscope {

/// Checks of a font's offsets for stb_truetype, which follows them unseen. Immutable; thread-safe;
/// borrows the bytes.
class FontCheck {
 public:
  /// Of a font whose table of tables begins at `start` of the file.
  FontCheck(FontReader file, size_t start);
  /// True where the tables lie within the file and are large enough for each other, the em is 16 …
  /// 16384 units. Of PostScript outlines (CFF) what the table holds is not looked into.
  bool sound_tables() const;
  /// True where the table of letters that begins at `place` of the file has a format that is read
  /// (0, 4, 6, 12, 13) and leads nowhere outside the file.
  bool sound_letters(size_t place) const;
  /// True of a glyph whose TrueType outline lies in its table with all its points and parts.
  bool sound_outline(int glyph) const;
  int glyphs() const { return glyphs_; }
  bool has_truetype() const { return glyf_.size() > 0; }
  /// True where TrueType outlines lie one behind the other: none is part of another.
  bool ordered_outlines() const { return ordered_; }

 private:
  bool sound_directory() const;
  bool sound_segments(size_t place) const;
  bool sound_outline(int glyph, int depth, int& parts) const;
  bool sound_parts(FontReader outline, int depth, int& parts) const;

  FontReader file_;
  size_t start_;
  FontReader head_, loca_, glyf_;
  int glyphs_ = 0;
  bool ordered_ = false;
};

}  // namespace attnscope
