#include <zlib.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/base/error.h"
#include "io/files/utf8.h"
#include "io/pictures/film/filmstrip.h"
#include "io/pictures/page_fonts.h"
#include "io/pictures/pdf_writer.h"
#include "io/pictures/picture_page.h"
#include "io/pictures/svg_writer.h"
#include "io/pictures/text/embedded_font.h"
#include "tests/support/catch.h"
#include "tests/support/picture_compare.h"
#include "tests/support/png_picture.h"
#include "tests/support/skip.h"
#include "tests/support/temporary_folder.h"

using namespace attnscope;
using namespace attnscope::test;
namespace fs = std::filesystem;

namespace {

/// All that a writer of a page puts.
template <class Write>
std::string put_by(const Write& write) {
  std::string bytes;
  write([&](std::span<const std::byte> some) {
    bytes.append(reinterpret_cast<const char*>(some.data()), some.size());
  });
  return bytes;
}

std::string pdf_of(const Canvas& page, double dpi, const std::string& title) {
  return put_by([&](const PutBytes& put) { write_pdf(page_of(page), dpi, title, put); });
}

std::string svg_of(const Canvas& page, double dpi, const std::string& title) {
  return put_by([&](const PutBytes& put) { write_svg(page_of(page), dpi, title, put); });
}

/// A page with words, cells and a line, for pixels or for a vector file.
Canvas sample_page(const PictureStyle& look) {
  Canvas page(look.page_width, 420, look);
  for (int i = 0; i < 60; ++i) {
    page.fill({40 + 12 * (i % 10), 120 + 12 * (i / 10), 12, 12},
              colormap_at(Colormap::viridis, i / 59.0));
  }
  page.text(40, 40, "Kopf 3 · layer 12: p < 0.5 & “ж” → 10⁻⁵", look.text_height, look.text);
  page.text(40, 80, "query 3,8,7", look.text_height, look.query);
  const std::vector<PixelPoint> curve{{250, 300}, {400, 150}, {600, 280}, {900, 200}};
  page.polyline(curve, 4, look.curve(0));
  return page;
}

PictureStyle paper(bool vector) {
  PictureStyle look = picture_style(StyleName::paper);
  look.page_width = 1004;  // 85 mm
  look.vector = vector;
  return look;
}

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

bool is_there(const std::string& program) {
  return std::system((program + " > /dev/null 2>&1").c_str()) == 0;
}

/// Mean difference of a channel, of 1.
double mean_difference(const Picture& a, const Picture& b) {
  REQUIRE(a.width == b.width);
  REQUIRE(a.height == b.height);
  double sum = 0;
  for (uint32_t y = 0; y < a.height; ++y) {
    for (uint32_t x = 0; x < a.width; ++x) {
      const Rgb p = a.at(static_cast<int>(x), static_cast<int>(y));
      const Rgb q = b.at(static_cast<int>(x), static_cast<int>(y));
      sum += std::abs(p.r - q.r) + std::abs(p.g - q.g) + std::abs(p.b - q.b);
    }
  }
  return sum / (3.0 * 255 * a.width * a.height);
}

}  // namespace

TEST_CASE("a PDF looks like the PNG, has its size in points, and its words can be found") {
  if (!is_there("pdftocairo -v")) {
    skip_test("poppler-utils is not installed (scripts/setup tests)");
    return;
  }
  const TemporaryFolder folder;
  const fs::path pdf = folder.path() / "p.pdf", png = folder.path() / "p.png";
  write_picture(sample_page(paper(true)), paper(true), "a title", pdf, false);
  write_picture(sample_page(paper(false)), paper(false), "a title", png, false);
  const std::string back = (folder.path() / "back").string();
  REQUIRE(std::system(("pdftocairo -png -r 300 -singlefile '" + pdf.string() + "' '" + back + "'")
                          .c_str()) == 0);
  const Picture drawn = read_png(png), read = read_png(back + ".png");
  CHECK(mean_difference(drawn, read) < 0.02);
  CHECK(compare_pictures(drawn, read, drawn.height).similarity > 0.98);
  const std::string words = (folder.path() / "words").string();
  REQUIRE(std::system(("pdftotext '" + pdf.string() + "' '" + words + "'").c_str()) == 0);
  const std::string text = read_file(words);
  CHECK(text.find("Kopf 3 · layer 12: p < 0.5 & “ж” → 10⁻⁵") != std::string::npos);
  CHECK(text.find("query 3,8,7") != std::string::npos);
  REQUIRE(std::system(("pdfinfo '" + pdf.string() + "' > '" + words + "'").c_str()) == 0);
  const std::string facts = read_file(words);
  const size_t at = facts.find("Page size:");
  REQUIRE(at != std::string::npos);
  CHECK(std::stod(facts.substr(at + 10)) == Approx(85 / 25.4 * 72).margin(0.2));
  CHECK(facts.find("Date") == std::string::npos);
  REQUIRE(std::system(("pdffonts '" + pdf.string() + "' > '" + words + "'").c_str()) == 0);
  CHECK(read_file(words).find("TrueType") != std::string::npos);
}

TEST_CASE("an SVG looks like the PNG") {
  if (!is_there("rsvg-convert --version")) {
    skip_test("librsvg2-bin is not installed (scripts/setup tests)");
    return;
  }
  const TemporaryFolder folder;
  const fs::path svg = folder.path() / "p.svg", png = folder.path() / "p.png";
  write_picture(sample_page(paper(true)), paper(true), "a title", svg, false);
  write_picture(sample_page(paper(false)), paper(false), "a title", png, false);
  const std::string back = (folder.path() / "back.png").string();
  REQUIRE(std::system(
              ("rsvg-convert -w 1004 -h 420 '" + svg.string() + "' -o '" + back + "'").c_str()) ==
          0);
  CHECK(mean_difference(read_png(png), read_png(back)) < 0.02);
  const std::string text = read_file(svg);
  CHECK(text.find("width=\"85.0053mm\"") != std::string::npos);
  CHECK(text.find("p &lt; 0.5 &amp; “ж”") != std::string::npos);
}

TEST_CASE("vector pages give the same bytes again, and pictures of pixels say their dpi") {
  const Canvas page = sample_page(paper(true));
  CHECK(pdf_of(page, 300, "t") == pdf_of(page, 300, "t"));
  CHECK(page.at(45, 45) == paper(true).background);
  const TemporaryFolder folder;
  write_picture(sample_page(paper(false)), paper(false), "t", folder / "p.png", false);
  const std::string png = read_file(folder / "p.png");
  const size_t at = png.find("pHYs");
  REQUIRE(at != std::string::npos);
  // 300 pixels an inch are 11811 a metre.
  CHECK(png.substr(at + 4, 9) == std::string("\0\0\x2e\x23\0\0\x2e\x23\x01", 9));
  write_picture(Canvas(4, 4, Rgb{}), {}, "t", folder / "plain.png", false);
  CHECK(read_file(folder / "plain.png").find("pHYs") == std::string::npos);
}

TEST_CASE("a subset of a font has its letters as they were") {
  const auto face = FontFace::of(embedded_font(), 0);
  REQUIRE(face);
  REQUIRE(has_truetype_outlines(*face));
  // Å is put together of others.
  const std::vector<char32_t> codes{U'A', U'g', U'Å', U'ж'};
  const FontSubset subset = make_font_subset(*face, codes);
  CHECK(subset.bytes.size() < 20000);
  const auto small = FontFace::of(subset.bytes, 0);
  REQUIRE(small);
  for (size_t i = 0; i < codes.size(); ++i) {
    INFO(i);
    REQUIRE(small->glyph(codes[i]) == static_cast<int>(i) + 1);
    CHECK(small->advance(small->glyph(codes[i])) == face->advance(face->glyph(codes[i])));
    const GlyphCoverage a = face->draw(face->glyph(codes[i]), 40, 0);
    const GlyphCoverage b = small->draw(small->glyph(codes[i]), 40, 0);
    CHECK(a.pixels == b.pixels);
    CHECK(a.width > 5);
  }
  CHECK(small->glyph(U'B') == 0);
}

TEST_CASE("of a damaged font, subsets are no larger than twice its outlines") {
  const std::vector<unsigned char> font(embedded_font().begin(), embedded_font().end());
  const auto table = [&](std::string_view tag) {
    const auto entry = std::search(font.begin(), font.end(), tag.begin(), tag.end());
    size_t place = 0;
    for (int i = 8; i < 12; ++i) place = place << 8 | *(entry + i);
    return place;
  };
  const size_t loca = table("loca"), glyphs = 1965;
  REQUIRE(font[table("maxp") + 4] * 256 + font[table("maxp") + 5] == static_cast<int>(glyphs));
  const size_t half = (font[loca + 2 * glyphs] * 256u + font[loca + 2 * glyphs + 1]);
  // Every other offset is the end: each second glyph spans all of the outlines.
  auto over = font;
  for (size_t i = 0; i <= glyphs; ++i) {
    const size_t to = i % 2 == 0 ? 0 : half;
    over[loca + 2 * i] = static_cast<unsigned char>(to >> 8);
    over[loca + 2 * i + 1] = static_cast<unsigned char>(to & 0xff);
  }
  std::vector<char32_t> codes;
  for (char32_t code = 0x21; code < 0x250; ++code) codes.push_back(code);
  for (char32_t code = 0x390; code < 0x460; ++code) codes.push_back(code);
  const auto all_over = FontFace::of(over, 0);
  // The last offset is beyond none of the bytes, so it is a font; its letters are drawn in pixels.
  REQUIRE(all_over);
  CHECK(!has_truetype_outlines(*all_over));
  CHECK(make_font_subset(*all_over, codes).bytes.size() < 2 * 2 * half + 60000);
  // One glyph has all outlines, and lies in order.
  auto one = font;
  for (size_t i = 0; i <= glyphs; ++i) {
    const size_t to = i < 40 ? 0 : half;
    one[loca + 2 * i] = static_cast<unsigned char>(to >> 8);
    one[loca + 2 * i + 1] = static_cast<unsigned char>(to & 0xff);
  }
  const auto in_one = FontFace::of(one, 0);
  REQUIRE(in_one);
  CHECK(has_truetype_outlines(*in_one));
  CHECK(make_font_subset(*in_one, codes).bytes.size() < 2 * 2 * half + 60000);
}

namespace {

/// The numbers behind a word of a PDF.
std::vector<double> numbers_behind(const std::string& pdf, const std::string& word, size_t count) {
  const size_t at = pdf.find(word);
  REQUIRE(at != std::string::npos);
  std::istringstream words(pdf.substr(at + word.size(), 200));
  std::vector<double> numbers(count);
  for (double& number : numbers) words >> number;
  return numbers;
}

/// The bytes of the stream whose dictionary has these words.
std::string inflated(const std::string& pdf, const std::string& words, size_t size) {
  const size_t at = pdf.find(words);
  REQUIRE(at != std::string::npos);
  const auto object = static_cast<int>(numbers_behind(pdf.substr(at), "/Length", 1)[0]);
  const auto length =
      static_cast<size_t>(numbers_behind(pdf, "\n" + std::to_string(object) + " 0 obj\n", 1)[0]);
  const size_t begin = pdf.find("stream\n", at) + 7;
  REQUIRE(pdf.substr(begin + length, 11) == "\nendstream\n");
  std::string bytes(size, '\0');
  uLongf found = size;
  REQUIRE(uncompress(reinterpret_cast<Bytef*>(bytes.data()), &found,
                     reinterpret_cast<const Bytef*>(pdf.data() + begin), length) == Z_OK);
  REQUIRE(found == size);
  return bytes;
}

}  // namespace

TEST_CASE("the image of a PDF has the page's pixels") {
  const Canvas page = sample_page(paper(true));
  const std::string pdf = pdf_of(page, 300, "t");
  const auto width = static_cast<size_t>(page.width());
  const std::string bytes =
      inflated(pdf, "/Subtype /Image", 3 * width * static_cast<size_t>(page.height()));
  size_t wrong = 0;
  for (int y = 0; y < page.height(); ++y) {
    const char* const row = bytes.data() + 3 * width * static_cast<size_t>(y);
    wrong += std::memcmp(row, page.row(y).data(), 3 * width) != 0;
  }
  CHECK(wrong == 0);
}

TEST_CASE("a PDF's page has at most 14400 units a side, larger ones where it is larger") {
  // At 72 dpi a pixel is a point.
  const auto box = [](int width, int height) {
    PictureStyle look = paper(true);
    const std::string pdf = pdf_of(Canvas(width, height, look), 72, "t");
    const auto found = numbers_behind(pdf, "/MediaBox [", 4);
    CHECK(found[0] == 0);
    CHECK(found[1] == 0);
    const bool has_unit = pdf.find("/UserUnit") != std::string::npos;
    CHECK(pdf.substr(0, 8) == (has_unit ? "%PDF-1.6" : "%PDF-1.5"));
    const double unit = has_unit ? numbers_behind(pdf, "/UserUnit", 1)[0] : 1;
    return std::array{found[2], found[3], unit};
  };
  CHECK(box(14400, 10) == std::array{14400.0, 10.0, 1.0});
  CHECK(box(14401, 10) == std::array{7200.5, 5.0, 2.0});
  CHECK(box(30, 30000) == std::array{10.0, 10000.0, 3.0});
  if (!is_there("pdfinfo -v")) return;
  const TemporaryFolder folder;
  const std::string pdf = (folder.path() / "p.pdf").string();
  std::ofstream(pdf, std::ios::binary) << pdf_of(Canvas(14402, 20, paper(true)), 72, "t");
  CHECK(std::system(("pdfinfo '" + pdf + "' > /dev/null").c_str()) == 0);
}

TEST_CASE("an SVG is XML whatever its title and texts are") {
  const std::string odd =
      "a<&>\"\x01\x1f\r|\xff|\xc3|\xed\xa0\x80|\xef\xbf\xbe|\xef\xbf\xbf|\u00e9\U0001f600\x7f";
  Canvas page(200, 40, paper(true));
  page.text(4, 4, "\x02 x \xfe", 12, Rgb{});
  const std::string svg = svg_of(page, 300, odd);
  const std::string sign = "\ufffd";
  const std::string title = "<title>a&lt;&amp;&gt;&quot;" + sign + sign + sign + "|" + sign + "|" +
                            sign + "|" + sign + "|" + sign + "|" + sign +
                            "|é\U0001f600\x7f</title>";
  CHECK(svg.find(title) != std::string::npos);
  CHECK(valid_utf8(svg));
  if (!is_there("xmllint --version")) return;
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "odd.svg", std::ios::binary) << svg;
  const std::string file = (folder.path() / "odd.svg").string();
  CHECK(std::system(("xmllint --noout --huge '" + file + "'").c_str()) == 0);
}
