#include "io/pictures/picture_page.h"

#include <algorithm>

#include "io/files/staged_file.h"
#include "io/pictures/png_writer.h"

namespace attnscope {
namespace {

/// Columns of dots that a title or a line may take: a page is not made wider by a long name.
constexpr int kTitleColumns = 420;
constexpr int kLineColumns = 520;
constexpr std::string_view kSeparator = "  ·  ";
constexpr int kLineRise = kTextHeight + 8;

/// The lines, those that are too long broken at their separators.
std::vector<std::string> wrapped(const std::vector<std::string>& lines) {
  std::vector<std::string> result;
  for (const std::string& line : lines) {
    std::string current;
    for (size_t at = 0; at <= line.size();) {
      const size_t end = std::min(line.find(kSeparator, at), line.size());
      const std::string part = line.substr(at, end - at);
      const std::string longer = current.empty() ? part : current + std::string(kSeparator) + part;
      if (!current.empty() && text_columns(longer) > kLineColumns) {
        result.push_back(current);
        current = part;
      } else {
        current = longer;
      }
      at = end + kSeparator.size();
    }
    result.push_back(elided(current, kLineColumns));
  }
  return result;
}

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
    if (!text.empty()) text += kSeparator;
    text += part;
  }
  return text;
}

int header_height(const PictureText& text) {
  return kMargin + kTitleHeight + kTextGap +
         static_cast<int>(wrapped(text.lines).size()) * kLineRise + 16;
}

int header_width(const PictureText& text) {
  int width = text_width(elided(text.title, kTitleColumns), kTitleScale);
  for (const std::string& line : wrapped(text.lines)) {
    width = std::max(width, text_width(line, kTextScale));
  }
  return width;
}

void draw_header(Canvas& canvas, const PictureText& text) {
  canvas.text(kMargin, kMargin, elided(text.title, kTitleColumns), kTitleScale, kText);
  int y = kMargin + kTitleHeight + kTextGap;
  for (const std::string& line : wrapped(text.lines)) {
    canvas.text(kMargin, y, line, kTextScale, kQuietText);
    y += kLineRise;
  }
}

void write_canvas_png(const Canvas& canvas, const std::filesystem::path& path, bool force) {
  StagedFile file(path, force);
  PngWriter png(file, canvas.width(), canvas.height());
  for (int y = 0; y < canvas.height(); ++y) png.write_row(canvas.row(y));
  png.finish();
  file.commit();
}

}  // namespace attnscope
