#include "io/pictures/text/font_check.h"

namespace attnscope {
namespace {

/// The least bytes of tables that every font has.
constexpr size_t kHead = 54, kHhea = 36, kMaxp = 6, kCmap = 4;
constexpr int kLeastEm = 16, kMostEm = 16384;
/// Of a glyph that is put together of others, so that none has itself as its part.
constexpr int kMostDepth = 8, kMostParts = 256;

/// Contours of points: their last points ascend, and flags and both coordinates of all are there.
bool sound_contours(FontReader outline) {
  const auto contours = static_cast<size_t>(outline.i16(0));
  int before = -1, last = -1;
  for (size_t i = 0; i < contours; ++i) {
    before = last;
    last = outline.u16(10 + 2 * i);
    if (last <= before) return false;
  }
  size_t at = 10 + 2 * contours;
  at += 2 + static_cast<size_t>(outline.u16(at));
  constexpr int kOnCurve = 1, kByteX = 2, kByteY = 4, kRepeat = 8, kSameX = 16, kSameY = 32;
  size_t coordinates = 0;
  int flags = 0;
  for (int point = 0, repeats = 0; point <= last; ++point, --repeats) {
    if (repeats <= 0) {
      flags = outline.u8(at++);
      repeats = 1 + ((flags & kRepeat) != 0 ? outline.u8(at++) : 0);
    }
    coordinates += (flags & kByteX) != 0 ? 1 : (flags & kSameX) != 0 ? 0 : 2;
    coordinates += (flags & kByteY) != 0 ? 1 : (flags & kSameY) != 0 ? 0 : 2;
  }
  // A contour that begins beside its curve is looked on by one point.
  if (last == before + 1 && (flags & kOnCurve) == 0) return false;
  return at + coordinates <= outline.size();
}

}  // namespace

FontCheck::FontCheck(FontReader file, size_t start)
    : file_(file),
      start_(start),
      head_(file.table(start, "head")),
      loca_(file.table(start, "loca")),
      glyf_(file.table(start, "glyf")),
      glyphs_(file.table(start, "maxp").u16(4)) {
  const bool long_offsets = head_.u16(50) != 0;
  ordered_ = has_truetype();
  for (int i = 0; i < glyphs_ && ordered_; ++i) {
    ordered_ = loca_.place_of(i, long_offsets) <= loca_.place_of(i + 1, long_offsets);
  }
}

bool FontCheck::sound_directory() const {
  const auto count = static_cast<uint64_t>(file_.u16(start_ + 4));
  if (start_ + 12 + 16 * count > file_.size()) return false;
  for (uint64_t i = 0; i < count; ++i) {
    const size_t at = start_ + 12 + 16 * i;
    if (uint64_t{file_.u32(at + 8)} + file_.u32(at + 12) > file_.size()) return false;
  }
  return true;
}

bool FontCheck::sound_tables() const {
  if (!sound_directory()) return false;
  const FontReader hhea = file_.table(start_, "hhea"), cmap = file_.table(start_, "cmap");
  const int metrics = hhea.u16(34), em = head_.u16(18);
  if (head_.size() < kHead || hhea.size() < kHhea || cmap.size() < kCmap ||
      file_.table(start_, "maxp").size() < kMaxp || em < kLeastEm || em > kMostEm || metrics < 1 ||
      file_.table(start_, "hmtx").size() < 4 * static_cast<size_t>(metrics) ||
      cmap.size() < kCmap + 8 * static_cast<size_t>(cmap.u16(2))) {
    return false;
  }
  if (!has_truetype()) return file_.table(start_, "CFF ").size() > 0;
  const int format = head_.u16(50);
  const size_t offset_bytes = format == 0 ? 2 : 4;
  return format <= 1 && loca_.size() >= (static_cast<size_t>(glyphs_) + 1) * offset_bytes &&
         loca_.place_of(glyphs_, format == 1) <= glyf_.size();
}

bool FontCheck::sound_letters(size_t place) const {
  // Offsets are counted in 32 bits there.
  if (place + 16 > file_.size() || file_.size() > INT32_MAX) return false;
  const size_t room = file_.size() - place;
  switch (file_.u16(place)) {
    case 0:
      return static_cast<size_t>(file_.u16(place + 2)) <= room;
    case 4:
      return sound_segments(place);
    case 6:
      return 10 + 2 * static_cast<size_t>(file_.u16(place + 8)) <= room;
    case 12:
    case 13:
      return 16 + uint64_t{12} * file_.u32(place + 12) <= room;
    default:
      return false;
  }
}

/// Format 4: segments of letters, some with glyphs in a list behind them all.
bool FontCheck::sound_segments(size_t place) const {
  const auto segments = static_cast<size_t>(file_.u16(place + 6) / 2);
  const size_t ends = place + 14, starts = ends + 2 * segments + 2;
  const size_t offsets = starts + 4 * segments;
  if (segments < 1 || offsets + 2 * segments > file_.size()) return false;
  // Where the search for a segment may end.
  if (file_.u16(place + 8) / 2 + file_.u16(place + 12) / 2 > static_cast<int>(segments)) {
    return false;
  }
  for (size_t i = 0; i < segments; ++i) {
    const size_t at = offsets + 2 * i;
    const int first = file_.u16(starts + 2 * i), last = file_.u16(ends + 2 * i);
    const auto offset = static_cast<size_t>(file_.u16(at));
    if (offset == 0 || last < first) continue;
    // Some fonts have 0xffff here, of a segment whose one letter is none.
    if (first == 0xffff) continue;
    if (at + offset + 2 * static_cast<size_t>(last - first) + 2 > file_.size()) return false;
  }
  return true;
}

bool FontCheck::sound_outline(int glyph) const {
  int parts = 0;
  return sound_outline(glyph, 0, parts);
}

bool FontCheck::sound_outline(int glyph, int depth, int& parts) const {
  if (glyph < 0 || glyph >= glyphs_ || depth > kMostDepth || ++parts > kMostParts) return false;
  const bool long_offsets = head_.u16(50) != 0;
  const size_t begin = loca_.place_of(glyph, long_offsets);
  const size_t end = loca_.place_of(glyph + 1, long_offsets);
  if (begin == end) return true;
  if (end < begin + 10 || end > glyf_.size()) return false;
  const FontReader outline = glyf_.part(begin, end - begin);
  const int contours = outline.i16(0);
  if (contours < 0) return sound_parts(outline, depth, parts);
  return contours == 0 || sound_contours(outline);
}

bool FontCheck::sound_parts(FontReader outline, int depth, int& parts) const {
  constexpr int kWords = 1, kPlaced = 2, kScale = 8, kMore = 0x20, kTwoScales = 0x40,
                kMatrix = 0x80;
  for (size_t at = 10; at + 4 <= outline.size();) {
    const int flags = outline.u16(at);
    if ((flags & kPlaced) == 0) return false;
    if (!sound_outline(outline.u16(at + 2), depth + 1, parts)) return false;
    at += (flags & kWords) != 0 ? 8 : 6;
    at += (flags & kScale) != 0       ? 2
          : (flags & kTwoScales) != 0 ? 4
          : (flags & kMatrix) != 0    ? 8
                                      : 0;
    if ((flags & kMore) == 0) return at <= outline.size();
  }
  return false;
}

}  // namespace attnscope
