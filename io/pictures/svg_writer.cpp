#include "io/pictures/svg_writer.h"

#include <fmt/core.h>

#include <span>
#include <string_view>

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

std::string png_text(const Canvas& page) {
  std::string bytes;
  PngWriter png(
      [&](std::span<const std::byte> some) {
        bytes.append(reinterpret_cast<const char*>(some.data()), some.size());
      },
      "the picture's cells", page.width(), page.height());
  for (int y = 0; y < page.height(); ++y) png.write_row(page.row(y));
  png.finish();
  return to_base64(std::as_bytes(std::span(bytes)));
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

std::string svg_of(const Canvas& page, double dpi, const std::string& title) {
  const PageFonts fonts(page.marks());
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" xmlns:xlink=\"http://www.w3.org/1999/xlink\" "
      "version=\"1.1\" width=\"{:.6g}mm\" height=\"{:.6g}mm\" viewBox=\"0 0 {} {}\">\n",
      page.width() / dpi * kMillimetresAnInch, page.height() / dpi * kMillimetresAnInch,
      page.width(), page.height());
  out += fmt::format("<title>{}</title>\n<style>\n", escaped(title));
  for (const PageFont& font : fonts.fonts()) {
    out += fmt::format("@font-face {{ font-family: \"{}\"; src: url(data:font/ttf;base64,{}); }}\n",
                       font.name, to_base64(std::as_bytes(std::span(font.letters.bytes))));
  }
  out += fmt::format(
      "</style>\n<image width=\"{}\" height=\"{}\" style=\"image-rendering: pixelated\" "
      "xlink:href=\"data:image/png;base64,{}\"/>\n",
      page.width(), page.height(), png_text(page));
  for (const CanvasMark& mark : page.marks()) {
    if (const auto* const text = std::get_if<TextMark>(&mark)) {
      put_text_runs(*text, fonts, out);
    } else {
      put_polyline(std::get<LineMark>(mark), out);
    }
  }
  return out + "</svg>\n";
}

}  // namespace attnscope
