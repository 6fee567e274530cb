#include "io/pictures/text/font_subset.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "io/pictures/text/font_reader.h"

namespace attnscope {
namespace {

using Bytes = std::vector<uint8_t>;

FontReader table_of(const FontFace& face, std::string_view tag) {
  return FontReader(face.file()).table(static_cast<size_t>(face.offset()), tag);
}

void put16(Bytes& bytes, int value) {
  bytes.push_back(static_cast<uint8_t>(value >> 8 & 0xff));
  bytes.push_back(static_cast<uint8_t>(value & 0xff));
}
void put32(Bytes& bytes, uint32_t value) {
  put16(bytes, static_cast<int>(value >> 16));
  put16(bytes, static_cast<int>(value & 0xffff));
}
void set16(Bytes& bytes, size_t at, int value) {
  if (at + 2 > bytes.size()) return;
  bytes[at] = static_cast<uint8_t>(value >> 8 & 0xff);
  bytes[at + 1] = static_cast<uint8_t>(value & 0xff);
}
void set32(Bytes& bytes, size_t at, uint32_t value) {
  set16(bytes, at, static_cast<int>(value >> 16));
  set16(bytes, at + 2, static_cast<int>(value & 0xffff));
}

constexpr int kMostGlyphs = 65535;

/// Glyphs in their new order. Those that are put together of others bring these along.
class GlyphCopies {
 public:
  explicit GlyphCopies(const FontFace& face)
      : glyf_(table_of(face, "glyf")),
        loca_(table_of(face, "loca")),
        hmtx_(table_of(face, "hmtx")),
        long_offsets_(table_of(face, "head").i16(50) != 0),
        metrics_(std::max(1, table_of(face, "hhea").u16(34))) {}

  void add(int glyph) { glyphs_.push_back(glyph); }

  /// The tables glyf, loca and hmtx.
  void write(Bytes& glyf, Bytes& loca, Bytes& hmtx) {
    for (size_t i = 0; i < glyphs_.size(); ++i) {
      put32(loca, static_cast<uint32_t>(glyf.size()));
      Bytes outline = outline_of(glyphs_[i]).copy();
      if (glyf.size() + outline.size() <= 2 * glyf_.size()) {
        rename_parts(outline);
        glyf.insert(glyf.end(), outline.begin(), outline.end());
      }
      while (glyf.size() % 4 != 0) glyf.push_back(0);
      put16(hmtx, advance(glyphs_[i]));
      put16(hmtx, bearing(glyphs_[i]));
    }
    put32(loca, static_cast<uint32_t>(glyf.size()));
  }
  int count() const { return static_cast<int>(glyphs_.size()); }

 private:
  FontReader outline_of(int glyph) const {
    const size_t begin = loca_.place_of(glyph, long_offsets_);
    const size_t end = loca_.place_of(glyph + 1, long_offsets_);
    return glyf_.part(begin, end > begin ? end - begin : 0);
  }
  int advance(int glyph) const {
    return hmtx_.u16(4 * static_cast<size_t>(std::min(glyph, metrics_ - 1)));
  }
  int bearing(int glyph) const {
    if (glyph < metrics_) return hmtx_.u16(4 * static_cast<size_t>(glyph) + 2);
    return hmtx_.u16(4 * static_cast<size_t>(metrics_) + 2 * static_cast<size_t>(glyph - metrics_));
  }
  int new_number(int glyph) {
    // What has no number left is the glyph of no letter.
    if (count() >= kMostGlyphs && !parts_.contains(glyph)) return 0;
    const auto [at, is_new] = parts_.try_emplace(glyph, count());
    if (is_new) add(glyph);
    return at->second;
  }
  /// In a glyph of several others (fewer than 0 contours) these get their new numbers.
  void rename_parts(Bytes& outline) {
    const FontReader read{std::span<const unsigned char>(outline)};
    if (outline.size() < 10 || read.i16(0) >= 0) return;
    constexpr int kWords = 1, kScale = 8, kMore = 0x20, kTwoScales = 0x40, kMatrix = 0x80;
    for (size_t at = 10; at + 4 <= outline.size();) {
      const int flags = read.u16(at);
      set16(outline, at + 2, new_number(read.u16(at + 2)));
      at += (flags & kWords) != 0 ? 8 : 6;
      at += (flags & kScale) != 0       ? 2
            : (flags & kTwoScales) != 0 ? 4
            : (flags & kMatrix) != 0    ? 8
                                        : 0;
      if ((flags & kMore) == 0) break;
    }
  }

  FontReader glyf_, loca_, hmtx_;
  bool long_offsets_ = false;
  int metrics_ = 1;
  std::vector<int> glyphs_;
  std::map<int, int> parts_;
};

/// Format 12: runs of letters; here each letter is one.
Bytes cmap_table(std::span<const char32_t> codes) {
  Bytes table;
  put16(table, 0);
  put16(table, 1);
  put16(table, 3);   // Windows,
  put16(table, 10);  // all of Unicode
  put32(table, 12);
  put16(table, 12);
  put16(table, 0);
  put32(table, static_cast<uint32_t>(16 + 12 * codes.size()));
  put32(table, 0);
  put32(table, static_cast<uint32_t>(codes.size()));
  for (size_t i = 0; i < codes.size(); ++i) {
    put32(table, codes[i]);
    put32(table, codes[i]);
    put32(table, static_cast<uint32_t>(i + 1));
  }
  return table;
}

/// No names of glyphs.
Bytes post_table() {
  Bytes table;
  put32(table, 0x00030000);
  table.resize(32);
  return table;
}

uint32_t checksum(const Bytes& bytes) {
  const FontReader read{std::span<const unsigned char>(bytes)};
  uint32_t sum = 0;
  for (size_t at = 0; at < bytes.size(); at += 4) sum += read.u32(at);
  return sum;
}

/// The file: tables in the order of their names, each from a multiple of 4 on.
Bytes font_file(const std::map<std::string, Bytes>& tables) {
  Bytes file;
  put32(file, 0x00010000);
  const int count = static_cast<int>(tables.size());
  int power = 0;
  while (2 << power <= count) ++power;
  put16(file, count);
  put16(file, 16 << power);
  put16(file, power);
  put16(file, 16 * count - (16 << power));
  uint32_t at = static_cast<uint32_t>(12 + 16 * tables.size());
  size_t head = 0;
  for (const auto& [tag, bytes] : tables) {
    file.insert(file.end(), tag.begin(), tag.end());
    put32(file, checksum(bytes));
    put32(file, at);
    put32(file, static_cast<uint32_t>(bytes.size()));
    if (tag == "head") head = at;
    at += static_cast<uint32_t>((bytes.size() + 3) / 4 * 4);
  }
  for (const auto& [tag, bytes] : tables) {
    file.insert(file.end(), bytes.begin(), bytes.end());
    while (file.size() % 4 != 0) file.push_back(0);
  }
  constexpr uint32_t kWholeSum = 0xb1b0afba;
  set32(file, head + 8, kWholeSum - checksum(file));
  return file;
}

}  // namespace

bool has_truetype_outlines(const FontFace& face) { return face.ordered_outlines(); }

FontSubset make_font_subset(const FontFace& face, std::span<const char32_t> codes) {
  FontSubset subset;
  subset.codes.assign(codes.begin(), codes.end());
  subset.units_per_em = face.units_per_em();
  GlyphCopies glyphs(face);
  glyphs.add(0);
  for (const char32_t code : codes) {
    const int glyph = face.glyph(code);
    glyphs.add(glyph);
    subset.advances.push_back(static_cast<uint16_t>(face.advance(glyph)));
  }
  std::map<std::string, Bytes> tables;
  glyphs.write(tables["glyf"], tables["loca"], tables["hmtx"]);
  for (const char* const tag : {"head", "hhea", "maxp", "name", "OS/2", "cvt ", "fpgm", "prep"}) {
    Bytes bytes = table_of(face, tag).copy();
    if (!bytes.empty()) tables[tag] = std::move(bytes);
  }
  tables["cmap"] = cmap_table(codes);
  tables["post"] = post_table();
  Bytes& head = tables["head"];
  set32(head, 8, 0);
  set16(head, 50, 1);
  set16(tables["hhea"], 34, glyphs.count());
  set16(tables["maxp"], 4, glyphs.count());
  const FontReader box{std::span<const unsigned char>(head)};
  subset.x_min = box.i16(36);
  subset.y_min = box.i16(38);
  subset.x_max = box.i16(40);
  subset.y_max = box.i16(42);
  const FontReader lines{std::span<const unsigned char>(tables["hhea"])};
  subset.ascent = lines.i16(4);
  subset.descent = lines.i16(6);
  subset.bytes = font_file(tables);
  return subset;
}

}  // namespace attnscope
