#include "io/pictures/picture_page.h"

#include <algorithm>

#include "io/files/staged_file.h"
#include "io/pictures/joined_parts.h"
#include "io/pictures/png_writer.h"
#include "io/pictures/text/text_ink.h"

namespace attnscope {
namespace {

/// Pixels that a title or a line may take: a page is not made wider by a long name.
constexpr int kTitleWidth = 1260;
constexpr int kLineWidth = 1040;
constexpr int kLineRise = kTextHeight + 8;

/// The lines, those that are too long broken at their separators.
std::vector<std::string> wrapped(const std::vector<std::string>& lines) {
  std::vector<std::string> result;
  for (const std::string& line : lines) {
    std::string current;
    for (size_t at = 0; at <= line.size();) {
      const size_t end = std::min(line.find(kPartSeparator, at), line.size());
      const std::string part = line.substr(at, end - at);
      const std::string longer =
          current.empty() ? part : current + std::string(kPartSeparator) + part;
      if (!current.empty() && text_width(longer, kTextHeight) > kLineWidth) {
        result.push_back(elided(current, kLineWidth, kTextHeight));
        current = part;
      } else {
        current = longer;
      }
      at = end + kPartSeparator.size();
    }
    result.push_back(elided(current, kLineWidth, kTextHeight));
  }
  return result;
}

}  // namespace

std::string elided(const std::string& text, int width, int cap_height) {
  if (text_width(text, cap_height) <= width) return text;
  const std::string dots = "…";
  const int room = width - text_width(dots, cap_height);
  return text.substr(0, fitting_bytes(text, cap_height, room)) + dots;
}

int header_height(const PictureText& text) {
  return kMargin + kTitleHeight + kTextGap +
         static_cast<int>(wrapped(text.lines).size()) * kLineRise + 16;
}

int header_width(const PictureText& text) {
  int width = text_width(elided(text.title, kTitleWidth, kTitleHeight), kTitleHeight);
  for (const std::string& line : wrapped(text.lines)) {
    width = std::max(width, text_width(line, kTextHeight));
  }
  return width;
}

void draw_header(Canvas& canvas, const PictureText& text) {
  canvas.text(kMargin, kMargin, elided(text.title, kTitleWidth, kTitleHeight), kTitleHeight, kText);
  int y = kMargin + kTitleHeight + kTextGap;
  for (const std::string& line : wrapped(text.lines)) {
    canvas.text(kMargin, y, line, kTextHeight, kQuietText);
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
