#include <cstdint>
#include <string_view>
#include <vector>

#include "io/pictures/text/embedded_font.h"
#include "io/pictures/text/font_face.h"
#include "tests/support/catch.h"

using namespace attnscope;

namespace {

using Bytes = std::vector<unsigned char>;

Bytes whole_font() { return {embedded_font().begin(), embedded_font().end()}; }

size_t number_at(const Bytes& font, size_t at) {
  return size_t{font[at]} << 24 | size_t{font[at + 1]} << 16 | size_t{font[at + 2]} << 8 |
         font[at + 3];
}

/// Where the entry of a table is in the table of tables.
size_t entry_of(const Bytes& font, std::string_view tag) {
  for (size_t at = 12; at + 16 <= font.size(); at += 16) {
    if (std::string_view(reinterpret_cast<const char*>(&font[at]), 4) == tag) return at;
  }
  FAIL("no table " << tag);
  return 0;
}

size_t table_place(const Bytes& font, std::string_view tag) {
  return number_at(font, entry_of(font, tag) + 8);
}

/// As a window and a page ask a font. Pixels of ink.
size_t draw_letters(const FontFace& face) {
  size_t ink = 0;
  for (const char32_t code :
       {U'A', U'g', U'Å', U'ж', U'→', U'%', char32_t{0x732b}, U'\U0001f600'}) {
    const int glyph = face.glyph(code);
    CHECK(face.advance(glyph) >= 0);
    for (const uint8_t pixel : face.draw(glyph, 20, 0.25).pixels) ink += pixel != 0;
  }
  return ink + static_cast<size_t>(face.cap_height() > 0 && face.line_height() > 0);
}

}  // namespace

TEST_CASE("a font that ends early is none, wherever it ends") {
  const Bytes font = whole_font();
  for (const size_t size : {size_t{0}, size_t{3}, size_t{11}, size_t{15}, size_t{16}, size_t{100},
                            size_t{171}, size_t{4000}, font.size() / 2, font.size() - 4}) {
    INFO(size);
    const Bytes some(font.begin(), font.begin() + static_cast<std::ptrdiff_t>(size));
    CHECK(!FontFace::of(some, 0));
  }
  CHECK(FontFace::of(font, 0));
}

TEST_CASE("a font whose em has no size is none") {
  Bytes font = whole_font();
  const size_t em = table_place(font, "head") + 18;
  for (const int units : {0, 15, 16385, 0xffff}) {
    INFO(units);
    font[em] = static_cast<unsigned char>(units >> 8);
    font[em + 1] = static_cast<unsigned char>(units & 0xff);
    CHECK(!FontFace::of(font, 0));
  }
  font[em] = 4;
  font[em + 1] = 0;
  REQUIRE(FontFace::of(font, 0));
  CHECK(FontFace::of(font, 0)->units_per_em() == 1024);
}

TEST_CASE("a font with a table that is missing, outside the file or too short is none") {
  for (const char* const tag : {"cmap", "glyf", "head", "hhea", "hmtx", "loca", "maxp"}) {
    INFO(tag);
    const Bytes font = whole_font();
    const size_t entry = entry_of(font, tag);
    Bytes renamed = font, outside = font, beyond = font, small = font;
    renamed[entry] = '?';
    CHECK(!FontFace::of(renamed, 0));
    // Offset and length together are more than 32 bits hold.
    for (size_t i = 8; i < 16; ++i) outside[entry + i] = 0xff;
    CHECK(!FontFace::of(outside, 0));
    beyond[entry + 12] = 1;
    CHECK(!FontFace::of(beyond, 0));
    for (size_t i = 12; i < 16; ++i) small[entry + i] = i == 15 ? 3 : 0;
    CHECK(!FontFace::of(small, 0));
  }
}

TEST_CASE("a collection that ends within its list of fonts is none") {
  Bytes font = whole_font();
  // A header of a collection of 200 fonts in 40 bytes.
  Bytes collection(40, 0);
  const std::string_view head("ttcf\0\1\0\0\0\0\0\xc8", 12);
  std::copy(head.begin(), head.end(), collection.begin());
  CHECK(!FontFace::of(collection, 150));
  CHECK(!FontFace::of(collection, 0));
}

TEST_CASE("damaged outlines draw nothing") {
  Bytes font = whole_font();
  const auto face = FontFace::of(font, 0);
  REQUIRE(face);
  const int glyph = face->glyph(U'A');
  // Its table loca has half of the offsets, in 16 bits.
  const size_t entry = table_place(font, "loca") + 2 * static_cast<size_t>(glyph);
  const size_t at = table_place(font, "glyf") + 2 * (number_at(font, entry) >> 16);
  REQUIRE(font.size() > at + 100);
  REQUIRE(!face->draw(glyph, 20, 0).pixels.empty());
  const Bytes before = font;
  font[at] = 0x7f;  // contours
  CHECK(face->draw(glyph, 20, 0).pixels.empty());
  font = before;
  font[at + 10] = font[at + 11] = 0xff;  // the last point of the first contour
  CHECK(face->draw(glyph, 20, 0).pixels.empty());
  // A glyph that is its own part.
  font = before;
  const Bytes own{0xff,
                  0xff,
                  0,
                  0,
                  0,
                  0,
                  4,
                  0,
                  4,
                  0,
                  0,
                  2,
                  static_cast<unsigned char>(glyph >> 8),
                  static_cast<unsigned char>(glyph & 0xff),
                  0,
                  0};
  std::copy(own.begin(), own.end(), font.begin() + static_cast<std::ptrdiff_t>(at));
  CHECK(face->draw(glyph, 20, 0).pixels.empty());
}

TEST_CASE("a font with one wrong byte is none or draws letters") {
  const Bytes font = whole_font();
  size_t read = 0, drawn = 0;
  const auto cmap = table_place(font, "cmap");
  const auto damage = [&](size_t at, unsigned char bits) {
    // Of the size exactly, so that a memory checker sees a step outside.
    Bytes wrong = font;
    wrong[at] ^= bits;
    const auto face = FontFace::of(wrong, 0);
    if (!face) return;
    ++read;
    drawn += draw_letters(*face) > 0;
  };
  for (size_t at = 0; at < 4096; ++at) {
    // All bits where offsets and sizes are, one way of the widths.
    for (const int bits : {0x01, 0x80, 0xff}) {
      if (at < 400 || bits == 0xff) damage(at, static_cast<unsigned char>(bits));
    }
  }
  for (size_t at = cmap; at < cmap + 316; ++at) damage(at, 0xff);
  CHECK(read > 3500);
  CHECK(drawn > 3500);
}
