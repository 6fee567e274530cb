#include "io/pictures/pdf_writer.h"

#include <fmt/core.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <new>
#include <span>
#include <string_view>
#include <vector>

#include "io/files/utf8.h"
#include "io/pictures/page_fonts.h"
#include "io/pictures/text/text_ink.h"

namespace attnscope {
namespace {

constexpr double kPoints = 72;
/// A thousand of these are an em, in widths of letters and boxes of fonts.
constexpr int kGlyphUnits = 1000;

/// Sides of a page are at most so many of its units (ISO 32000-1, annex C.2).
constexpr double kMostUnits = 14400;

/// Packs bytes piece by piece, and puts what comes of them.
class Deflater {
 public:
  explicit Deflater(const PutBytes& put) : put_(put) {
    if (deflateInit(&stream_, Z_BEST_COMPRESSION) != Z_OK) throw std::bad_alloc();
  }
  ~Deflater() { deflateEnd(&stream_); }
  Deflater(const Deflater&) = delete;
  Deflater& operator=(const Deflater&) = delete;

  void put(std::string_view bytes) {
    constexpr size_t kPiece = size_t{1} << 30;  // zlib counts in 32 bits
    for (; !bytes.empty(); bytes.remove_prefix(std::min(kPiece, bytes.size()))) {
      pack(bytes.substr(0, kPiece), Z_NO_FLUSH);
    }
  }
  void finish() { pack({}, Z_FINISH); }

 private:
  void pack(std::string_view bytes, int flush) {
    // zlib reads these bytes alone, although its pointer is not const.
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream_.avail_in = static_cast<uInt>(bytes.size());
    std::array<std::byte, 1 << 14> packed;
    do {
      stream_.next_out = reinterpret_cast<Bytef*>(packed.data());
      stream_.avail_out = static_cast<uInt>(packed.size());
      if (deflate(&stream_, flush) == Z_STREAM_ERROR) throw std::bad_alloc();
      put_(std::span(packed).first(packed.size() - stream_.avail_out));
    } while (stream_.avail_out == 0);
  }

  const PutBytes& put_;
  z_stream stream_{};
};

void put_utf16(char32_t code, std::string& hex) {
  if (code > 0xffff) {
    code -= 0x10000;
    hex += fmt::format("{:04X}{:04X}", 0xd800 + (static_cast<uint32_t>(code) >> 10),
                       0xdc00 + (static_cast<uint32_t>(code) & 0x3ff));
  } else {
    hex += fmt::format("{:04X}", static_cast<uint32_t>(code));
  }
}

std::string utf16_text(std::string_view text) {
  std::string hex = "<FEFF";
  for (size_t at = 0; at < text.size();) put_utf16(next_character(text, at), hex);
  return hex + ">";
}

/// Puts objects with their numbers, and the table of where they are.
class PdfFile {
 public:
  PdfFile(std::string_view version, const PutBytes& put) : put_(put) {
    put_text(fmt::format("%PDF-{}\n%\xe2\xe3\xcf\xd3\n", version));
  }

  /// The number that the next add() will give.
  int next() const { return static_cast<int>(places_.size()) + 1; }
  int add(std::string_view object) {
    places_.push_back(size_);
    put_text(fmt::format("{} 0 obj\n{}\nendobj\n", next() - 1, object));
    return next() - 1;
  }
  /// `facts`: entries of the stream's dictionary.
  int add_stream(std::string_view facts, std::string_view bytes) {
    return add_stream(facts, [&](Deflater& stream) { stream.put(bytes); });
  }
  /// A stream of the bytes that put(Deflater&) puts.
  template <class Put>
  requires std::invocable<Put, Deflater&>
  int add_stream(std::string_view facts, const Put& put) {
    const int number = next();
    places_.push_back(size_);
    // Its length is known behind it: the next object.
    put_text(fmt::format("{} 0 obj\n<< {} /Filter /FlateDecode /Length {} 0 R >>\nstream\n", number,
                         facts, number + 1));
    const size_t begin = size_;
    const PutBytes counted = [this](std::span<const std::byte> bytes) { put_bytes(bytes); };
    Deflater stream(counted);
    put(stream);
    stream.finish();
    const size_t length = size_ - begin;
    put_text("\nendstream\nendobj\n");
    add(std::to_string(length));
    return number;
  }
  void finish(int catalog, int info) {
    const size_t table = size_;
    std::string text = fmt::format("xref\n0 {}\n0000000000 65535 f \n", next());
    for (const size_t place : places_) text += fmt::format("{:010} 00000 n \n", place);
    put_text(text + fmt::format(
                        "trailer\n<< /Size {} /Root {} 0 R /Info {} 0 R >>\nstartxref\n{}\n%%EOF\n",
                        next(), catalog, info, table));
  }

 private:
  void put_text(std::string_view text) { put_bytes(std::as_bytes(std::span(text))); }
  void put_bytes(std::span<const std::byte> bytes) {
    put_(bytes);
    size_ += bytes.size();
  }

  const PutBytes& put_;
  size_t size_ = 0;
  std::vector<size_t> places_;
};

/// Which letter each glyph is, so that text can be searched.
std::string to_unicode(const FontSubset& letters) {
  std::string map =
      "/CIDInit /ProcSet findresource begin 12 dict begin begincmap\n"
      "/CIDSystemInfo << /Registry (Adobe) /Ordering (UCS) /Supplement 0 >> def\n"
      "/CMapName /Adobe-Identity-UCS def /CMapType 2 def\n"
      "1 begincodespacerange <0000> <FFFF> endcodespacerange\n";
  constexpr size_t kMost = 100;  // lines of a block
  for (size_t first = 0; first < letters.codes.size(); first += kMost) {
    const size_t end = std::min(first + kMost, letters.codes.size());
    map += fmt::format("{} beginbfchar\n", end - first);
    for (size_t i = first; i < end; ++i) {
      map += fmt::format("<{:04X}> <", i + 1);
      put_utf16(letters.codes[i], map);
      map += ">\n";
    }
    map += "endbfchar\n";
  }
  return map + "endcmap CMapName currentdict /CMap defineresource pop end end\n";
}

/// A composite font whose codes are glyphs (Identity-H).
int add_font(PdfFile& file, const PageFont& font, size_t number) {
  const FontSubset& f = font.letters;
  const auto scaled = [&](int units) { return units * kGlyphUnits / f.units_per_em; };
  const std::string name =
      fmt::format("ATTNS{}+{}", static_cast<char>('A' + number % 26), font.name);
  const int data = file.add_stream(fmt::format("/Length1 {}", f.bytes.size()),
                                   {reinterpret_cast<const char*>(f.bytes.data()), f.bytes.size()});
  const int facts = file.add(fmt::format(
      "<< /Type /FontDescriptor /FontName /{} /Flags 4 /FontBBox [{} {} {} {}] /ItalicAngle 0 "
      "/Ascent {} /Descent {} /CapHeight {} /StemV 80 /FontFile2 {} 0 R >>",
      name, scaled(f.x_min), scaled(f.y_min), scaled(f.x_max), scaled(f.y_max), scaled(f.ascent),
      scaled(f.descent), scaled(f.ascent), data));
  std::string widths;
  for (const uint16_t advance : f.advances) {
    widths += fmt::format(" {:.6g}", static_cast<double>(advance) * kGlyphUnits / f.units_per_em);
  }
  const int glyphs = file.add(fmt::format(
      "<< /Type /Font /Subtype /CIDFontType2 /BaseFont /{} /CIDSystemInfo << /Registry (Adobe) "
      "/Ordering (Identity) /Supplement 0 >> /FontDescriptor {} 0 R /DW 1000 /W [1 [{}]] "
      "/CIDToGIDMap /Identity >>",
      name, facts, widths));
  const int unicode = file.add_stream("", to_unicode(f));
  return file.add(fmt::format(
      "<< /Type /Font /Subtype /Type0 /BaseFont /{} /Encoding /Identity-H /DescendantFonts [{} 0 "
      "R] /ToUnicode {} 0 R >>",
      name, glyphs, unicode));
}

std::string colour_words(Rgb c, const char* command) {
  return fmt::format("{:.4g} {:.4g} {:.4g} {}\n", c.r / 255.0, c.g / 255.0, c.b / 255.0, command);
}

/// Letters are mirrored back: the page's y runs down.
void put_text(const TextMark& text, const PageFonts& fonts, std::string& out) {
  for (const LetterRun& run : fonts.runs(text)) {
    out += colour_words(text.colour, "rg");
    out += fmt::format("BT /F{} {:.6g} Tf 1 0 0 -1 {:.6g} {} Tm <", run.font,
                       em_pixels(text.cap_height), run.x, text.y + text.cap_height);
    for (const size_t letter : run.letters) out += fmt::format("{:04X}", letter + 1);
    out += "> Tj ET\n";
  }
}

void put_line(const LineMark& line, std::string& out) {
  out += colour_words(line.colour, "RG");
  out += fmt::format("{:.6g} w", line.width);
  // A line of one point is a dot.
  for (size_t i = 0; i < std::max<size_t>(line.points.size(), 2); ++i) {
    const PixelPoint p = line.points[std::min(i, line.points.size() - 1)];
    out += fmt::format(" {:.6g} {:.6g} {}", p.x, p.y, i == 0 ? 'm' : 'l');
  }
  out += " S\n";
}

/// Adds the page's pixels, and gives its texts and lines.
int add_image(PdfFile& file, const PageBands& page, std::vector<CanvasMark>& marks) {
  return file.add_stream(
      fmt::format("/Type /XObject /Subtype /Image /Width {} /Height {} /ColorSpace /DeviceRGB "
                  "/BitsPerComponent 8",
                  page.width, page.height),
      [&](Deflater& stream) {
        marks = draw_bands(page, [&](std::span<const Rgb> row) {
          stream.put({reinterpret_cast<const char*>(row.data()), row.size_bytes()});
        });
      });
}

/// The drawing of a page: its image, and its texts and lines above it.
std::string drawing_of(const PageBands& page, std::span<const CanvasMark> marks,
                       const PageFonts& fonts, double scale) {
  // Lines have round joins and ends.
  std::string content =
      fmt::format("{:.8g} 0 0 {:.8g} 0 {:.8g} cm 1 J 1 j\n", scale, -scale, page.height * scale);
  content +=
      fmt::format("q {} 0 0 {} 0 {} cm /Cells Do Q\n", page.width, -page.height, page.height);
  for (const CanvasMark& mark : marks) {
    if (const auto* const text = std::get_if<TextMark>(&mark)) {
      put_text(*text, fonts, content);
    } else {
      put_line(std::get<LineMark>(mark), content);
    }
  }
  return content;
}

}  // namespace

void write_pdf(const PageBands& page, double dpi, const std::string& title, const PutBytes& put) {
  const double longest = std::max(page.width, page.height) * kPoints / dpi;
  // Points that a unit of the page is: more than one where there would be too many.
  const double unit = std::max(1.0, std::ceil(longest / kMostUnits));
  const double scale = kPoints / dpi / unit;
  PdfFile file(unit > 1 ? "1.6" : "1.5", put);
  std::vector<CanvasMark> marks;
  const int image = add_image(file, page, marks);
  const PageFonts fonts(marks);
  std::string resources;
  for (size_t i = 0; i < fonts.fonts().size(); ++i) {
    resources += fmt::format("/F{} {} 0 R ", i, add_font(file, fonts.fonts()[i], i));
  }
  const int drawing = file.add_stream("", drawing_of(page, marks, fonts, scale));
  const int pages = file.next() + 1;
  const int leaf = file.add(
      fmt::format("<< /Type /Page /Parent {} 0 R /MediaBox [0 0 {:.8g} {:.8g}]{} "
                  "/Contents {} 0 R /Resources << "
                  "/Font << {}>> /XObject << /Cells {} 0 R >> >> >>",
                  pages, page.width * scale, page.height * scale,
                  unit > 1 ? fmt::format(" /UserUnit {}", unit) : "", drawing, resources, image));
  file.add(fmt::format("<< /Type /Pages /Kids [{} 0 R] /Count 1 >>", leaf));
  const int catalog = file.add(fmt::format("<< /Type /Catalog /Pages {} 0 R >>", pages));
  const int info =
      file.add(fmt::format("<< /Title {} /Producer (attnscope) >>", utf16_text(title)));
  file.finish(catalog, info);
}

}  // namespace attnscope
