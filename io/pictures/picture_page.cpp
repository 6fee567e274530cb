#include "io/pictures/picture_page.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/base/error.h"
#include "io/files/staged_file.h"
#include "io/pictures/joined_parts.h"
#include "io/pictures/pdf_writer.h"
#include "io/pictures/png_writer.h"
#include "io/pictures/svg_writer.h"
#include "io/pictures/text/text_ink.h"

namespace attnscope {
namespace {

/// Pixels that a title or a line may take where the page's width is not given: a page is not made
/// wider by a long name.
constexpr int kTitleWidth = 1260;
constexpr int kLineWidth = 1040;

int text_room(const PictureStyle& look, int usual) {
  return look.page_width > 0 ? std::max(1, look.page_width - 2 * look.margin) : look.px(usual);
}

/// The lines, those that are too long broken at their separators.
std::vector<std::string> wrapped(const std::vector<std::string>& lines, const PictureStyle& look) {
  const int room = text_room(look, kLineWidth);
  std::vector<std::string> result;
  const auto put = [&](const std::string& line) {
    if (look.page_width == 0) return result.push_back(elided(line, room, look.text_height));
    for (std::string& piece : wrapped_words(line, room, look.text_height)) {
      result.push_back(std::move(piece));
    }
  };
  for (const std::string& line : lines) {
    std::string current;
    for (size_t at = 0; at <= line.size();) {
      const size_t end = std::min(line.find(kPartSeparator, at), line.size());
      const std::string part = line.substr(at, end - at);
      const std::string longer =
          current.empty() ? part : current + std::string(kPartSeparator) + part;
      if (!current.empty() && text_width(longer, look.text_height) > room) {
        put(current);
        current = part;
      } else {
        current = longer;
      }
      at = end + kPartSeparator.size();
    }
    put(current);
  }
  return result;
}

/// A header as it stands on its page.
struct HeaderLines {
  std::vector<std::string> title, lines;
  bool empty() const { return title.empty() && lines.empty(); }
};

HeaderLines header_lines(const PictureText& text, const PictureStyle& look) {
  if (look.title && look.title->empty()) return {};
  const int room = text_room(look, kTitleWidth);
  HeaderLines header;
  if (look.title || look.page_width > 0) {
    header.title = wrapped_words(look.title.value_or(text.title), room, look.title_height);
  } else {
    header.title = {elided(text.title, room, look.title_height)};
  }
  header.lines = wrapped(text.lines, look);
  return header;
}

int title_rise(const PictureStyle& look) { return look.title_height + look.text_gap; }

}  // namespace

int64_t page_bytes(PageSize page) {
  if (page.band_bytes > 0) return page.band_bytes;
  return int64_t{page.width} * page.height * static_cast<int64_t>(sizeof(Rgb));
}

int line_rise(const PictureStyle& look) { return look.text_height + look.px(8); }

std::vector<std::string> wrapped_words(std::string_view text, int width, int cap_height) {
  std::vector<std::string> lines;
  std::string current;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    const std::string word(text.substr(at, end - at));
    const std::string longer = at == 0 || current.empty() ? current + word : current + ' ' + word;
    if (!current.empty() && text_width(longer, cap_height) > width) {
      lines.push_back(elided(current, width, cap_height));
      current = word;
    } else {
      current = longer;
    }
    at = end + 1;
  }
  lines.push_back(elided(current, width, cap_height));
  return lines;
}

void check_page(const PictureStyle& look, PageSize least, std::string_view way_out) {
  const auto length = [&](int pixels) {
    return fmt::format("{} pixels ({:.1f} mm at {:g} dpi)", pixels,
                       pixels / look.dpi * kMillimetresAnInch, look.dpi);
  };
  if (look.page_width > 0 && least.width > look.page_width) {
    throw usage_error(
        fmt::format("{}: this picture needs at least {} of width (got {}): {}, or a smaller "
                    "--font-size; of a width in mm more --dpi helps too",
                    look.page_height > 0 ? "--size" : "--width", length(least.width),
                    look.page_width, way_out));
  }
  if (look.page_height > 0 && least.height > look.page_height) {
    throw usage_error(
        fmt::format("--size: this picture is at least {} high at this width (got {}): {}, or a "
                    "smaller --font-size",
                    length(least.height), look.page_height, way_out));
  }
}

int64_t cells_on_page(const PictureStyle& look, int64_t usual) {
  // Numbers of tokens and a colour bar beside the map, a header above it.
  constexpr int kBeside = 330, kAbove = 240, kFewest = 16;
  int64_t cells = usual;
  if (look.page_width > 0) cells = std::min<int64_t>(cells, look.page_width - look.px(kBeside));
  if (look.page_height > 0) cells = std::min<int64_t>(cells, look.page_height - look.px(kAbove));
  return std::max<int64_t>(cells / std::max(1, look.cell), kFewest);
}

int largest_cell(const PictureStyle& look, int most, const std::function<PageSize(int)>& size_of) {
  const auto fits = [&](int cell) {
    const PageSize size = size_of(cell);
    return size.width <= look.page_width &&
           (look.page_height == 0 || size.height <= look.page_height);
  };
  int least = 0, beyond = most + 1;
  while (beyond - least > 1) {
    const int middle = least + (beyond - least) / 2;
    (fits(middle) ? least : beyond) = middle;
  }
  return least;
}

int fitting_cell(const PictureStyle& look, int usual, int most,
                 const std::function<PageSize(int)>& size_of, std::string_view way_out) {
  if (look.cell > 0 || look.page_width == 0) {
    const int cell = look.cell > 0 ? look.cell : usual;
    check_page(look, size_of(cell), way_out);
    return cell;
  }
  const int cell = largest_cell(look, most, size_of);
  if (cell == 0) check_page(look, size_of(1), way_out);
  return std::max(1, cell);
}

std::string elided(const std::string& text, int width, int cap_height) {
  if (text_width(text, cap_height) <= width) return text;
  const std::string dots = "…";
  const int room = width - text_width(dots, cap_height);
  return text.substr(0, fitting_bytes(text, cap_height, room)) + dots;
}

std::string elided_front(const std::string& text, int width, int cap_height) {
  std::string shown = text;
  for (size_t at = 0; text_width(shown, cap_height) > width;) {
    at = text.find(' ', at + 1);
    if (at == std::string::npos) return elided(shown, width, cap_height);
    shown = "…" + text.substr(at);
  }
  return shown;
}

int header_height(const PictureText& text, const PictureStyle& look) {
  const HeaderLines header = header_lines(text, look);
  if (header.empty()) return look.margin;
  return look.margin + static_cast<int>(header.title.size()) * title_rise(look) +
         static_cast<int>(header.lines.size()) * line_rise(look) + look.px(16);
}

int header_width(const PictureText& text, const PictureStyle& look) {
  const HeaderLines header = header_lines(text, look);
  int width = 0;
  for (const std::string& line : header.title) {
    width = std::max(width, text_width(line, look.title_height));
  }
  for (const std::string& line : header.lines) {
    width = std::max(width, text_width(line, look.text_height));
  }
  return width;
}

void draw_header(Canvas& canvas, const PictureText& text, const PictureStyle& look) {
  const HeaderLines header = header_lines(text, look);
  int y = look.margin;
  for (const std::string& line : header.title) {
    canvas.text(look.margin, y, line, look.title_height, look.text);
    y += title_rise(look);
  }
  for (const std::string& line : header.lines) {
    canvas.text(look.margin, y, line, look.text_height, look.quiet_text);
    y += line_rise(look);
  }
}

std::vector<std::string_view> picture_endings() { return {".png", ".svg", ".pdf"}; }

bool is_vector_name(const std::filesystem::path& path) {
  return path.extension() == ".svg" || path.extension() == ".pdf";
}

double told_dpi(const PictureStyle& look) {
  const bool as_screens = look.dpi == PictureStyle().dpi && look.page_width == 0;
  return as_screens ? 0 : look.dpi;
}

void put_picture(const PageBands& page, const PictureStyle& look, const std::string& title,
                 StagedFile& file) {
  const PutBytes put = [&file](std::span<const std::byte> bytes) { file.append(bytes); };
  const std::string& name = look.title ? *look.title : title;
  if (file.path().extension() == ".pdf") return write_pdf(page, look.dpi, name, put);
  if (file.path().extension() == ".svg") return write_svg(page, look.dpi, name, put);
  PngWriter png(put, file.part_path(), page.width, page.height, told_dpi(look));
  draw_bands(page, [&](std::span<const Rgb> row) { png.write_row(row); });
  png.finish();
}

void put_picture(const Canvas& canvas, const PictureStyle& look, const std::string& title,
                 StagedFile& file) {
  put_picture(page_of(canvas), look, title, file);
}

void write_picture(const PageBands& page, const PictureStyle& look, const std::string& title,
                   const std::filesystem::path& path, bool force) {
  StagedFile file(path, force);
  put_picture(page, look, title, file);
  file.commit();
}

void write_picture(const Canvas& canvas, const PictureStyle& look, const std::string& title,
                   const std::filesystem::path& path, bool force) {
  write_picture(page_of(canvas), look, title, path, force);
}

}  // namespace attnscope
