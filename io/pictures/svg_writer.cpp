#include "io/pictures/svg_writer.h"

#include <fmt/core.h>

#include <algorithm>
#include <span>
#include <string_view>
#include <vector>

#include "io/files/base64.h"
#include "io/files/utf8.h"
#include "io/pictures/page_fonts.h"
#include "io/pictures/png_writer.h"
#include "io/pictures/text/text_ink.h"

namespace attnscope {
namespace {

/// True of characters that XML 1.0 has (section 2.2).
bool is_in_xml(char32_t c) {
  return c == '\t' || c == '\n' || (c >= 0x20 && c != 0xfffe && c != 0xffff);
}

std::string escaped(std::string_view text) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const char32_t c = next_character(text, at);
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        append_character(is_in_xml(c) ? c : kReplacementCharacter, result);
    }
  }
  return result;
}

std::string hex(Rgb c) { return fmt::format("#{:02x}{:02x}{:02x}", c.r, c.g, c.b); }

void put_text(std::string_view text, const PutBytes& put) { put(std::as_bytes(std::span(text))); }

/// Puts the page's pixels as the base64 text of a PNG; returns its texts and lines.
std::vector<CanvasMark> put_png_text(const PageBands& page, const PutBytes& put) {
  // Whole groups of base64, which are of three bytes.
  constexpr size_t kPiece = 3 * 8192;
  std::string bytes;
  const auto put_pieces = [&](size_t least) {
    for (; bytes.size() >= least && !bytes.empty(); bytes.erase(0, kPiece)) {
      put_text(to_base64(std::as_bytes(std::span(bytes)).first(std::min(kPiece, bytes.size()))),
               put);
    }
  };
  PngWriter png(
      [&](std::span<const std::byte> some) {
        bytes.append(reinterpret_cast<const char*>(some.data()), some.size());
        put_pieces(kPiece);
      },
      "the picture's cells", page.width, page.height);
  std::vector<CanvasMark> marks =
      draw_bands(page, [&](std::span<const Rgb> row) { png.write_row(row); });
  png.finish();
  put_pieces(0);
  return marks;
}

void put_text_runs(const TextMark& text, const PageFonts& fonts, std::string& out) {
  for (const LetterRun& run : fonts.runs(text)) {
    if (run.text.find_first_not_of(' ') == std::string::npos) continue;
    out += fmt::format(
        "<text xml:space=\"preserve\" x=\"{:.6g}\" y=\"{}\" font-family=\"{}{}\" "
        "font-size=\"{:.6g}\" fill=\"{}\" textLength=\"{:.6g}\" "
        "lengthAdjust=\"spacingAndGlyphs\">{}</text>\n",
        run.x, text.y + text.cap_height, fonts.fonts()[run.font].name,
        fonts.fonts()[run.font].name == "DejaVuSans" ? ", 'DejaVu Sans', sans-serif"
                                                     : ", sans-serif",
        em_pixels(text.cap_height), hex(text.colour), run.end - run.x, escaped(run.text));
  }
}

void put_polyline(const LineMark& line, std::string& out) {
  out += fmt::format(
      "<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"{:.6g}\" stroke-linejoin=\"round\" "
      "stroke-linecap=\"round\" points=\"",
      hex(line.colour), line.width);
  for (size_t i = 0; i < std::max<size_t>(line.points.size(), 2); ++i) {
    const PixelPoint p = line.points[std::min(i, line.points.size() - 1)];
    out += fmt::format("{}{:.6g},{:.6g}", i == 0 ? "" : " ", p.x, p.y);
  }
  out += "\"/>\n";
}

}  // namespace

void write_svg(const PageBands& page, double dpi, const std::string& title, const PutBytes& put) {
  put_text(
      fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" "
                  "xmlns:xlink=\"http://www.w3.org/1999/xlink\" version=\"1.1\" "
                  "width=\"{:.6g}mm\" height=\"{:.6g}mm\" viewBox=\"0 0 {} {}\">\n"
                  "<title>{}</title>\n"
                  "<image width=\"{}\" height=\"{}\" style=\"image-rendering: pixelated\" "
                  "xlink:href=\"data:image/png;base64,",
                  page.width / dpi * kMillimetresAnInch, page.height / dpi * kMillimetresAnInch,
                  page.width, page.height, escaped(title), page.width, page.height),
      put);
  const std::vector<CanvasMark> marks = put_png_text(page, put);
  const PageFonts fonts(marks);
  std::string out = "\"/>\n<style>\n";
  for (const PageFont& font : fonts.fonts()) {
    out += fmt::format("@font-face {{ font-family: \"{}\"; src: url(data:font/ttf;base64,{}); }}\n",
                       font.name, to_base64(std::as_bytes(std::span(font.letters.bytes))));
  }
  out += "</style>\n";
  for (const CanvasMark& mark : marks) {
    if (const auto* const text = std::get_if<TextMark>(&mark)) {
      put_text_runs(*text, fonts, out);
    } else {
      put_polyline(std::get<LineMark>(mark), out);
    }
  }
  put_text(out + "</svg>\n", put);
}

}  // namespace attnscope
