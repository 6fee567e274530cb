#include "io/picture_page.h"

#include <algorithm>

#include "io/part_file.h"
#include "io/png_writer.h"

namespace attnscope {
namespace {

/// Columns of dots that a title or a line may take: a page is not made wider by a long name.
constexpr int kTitleColumns = 420;
constexpr int kLineColumns = 640;
constexpr int kLineRise = kTextHeight + 8;

}  // namespace

std::string elided(const std::string& text, int columns) {
  if (text_columns(text) <= columns) return text;
  size_t length = 0;
  const std::string dots = "…";
  for (size_t at = 1; at <= text.size(); ++at) {
    // Between two characters of UTF-8 only.
    if (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80) continue;
    if (text_columns(text.substr(0, at) + dots) > columns) break;
    length = at;
  }
  return text.substr(0, length) + dots;
}

std::string joined_parts(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) {
    if (part.empty()) continue;
    if (!text.empty()) text += "  ·  ";
    text += part;
  }
  return text;
}

int header_height(const PictureText& text) {
  return kMargin + kTitleHeight + kTextGap + static_cast<int>(text.lines.size()) * kLineRise + 16;
}

int header_width(const PictureText& text) {
  int width = text_width(elided(text.title, kTitleColumns), kTitleScale);
  for (const std::string& line : text.lines) {
    width = std::max(width, text_width(elided(line, kLineColumns), kTextScale));
  }
  return width;
}

void draw_header(Canvas& canvas, const PictureText& text) {
  canvas.text(kMargin, kMargin, elided(text.title, kTitleColumns), kTitleScale, kText);
  int y = kMargin + kTitleHeight + kTextGap;
  for (const std::string& line : text.lines) {
    canvas.text(kMargin, y, elided(line, kLineColumns), kTextScale, kQuietText);
    y += kLineRise;
  }
}

void write_canvas_png(const Canvas& canvas, const std::filesystem::path& path, bool force) {
  PartFile file(path, force);
  PngWriter png(file, canvas.width(), canvas.height());
  for (int y = 0; y < canvas.height(); ++y) png.write_row(canvas.row(y));
  png.finish();
  file.commit();
}

}  // namespace attnscope
