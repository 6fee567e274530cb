#include "cli/common/picture_options.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <functional>
#include <string_view>
#include <utility>

#include "core/base/error.h"
#include "core/base/selection.h"
#include "io/pictures/picture_page.h"

namespace attnscope {
namespace {

constexpr const char* kHeading = "The picture's look";
constexpr int kLeastPage = 16, kMostPage = 20000;
constexpr double kLeastDpi = 20, kMostDpi = 2400;
constexpr double kLeastFont = 2, kMostFont = 200;

/// Inches of a unit; 0: it is a pixel.
constexpr std::array<std::pair<std::string_view, double>, 5> kUnits{
    {{"mm", 1 / 25.4}, {"cm", 1 / 2.54}, {"in", 1}, {"pt", 1 / 72.0}, {"px", 0}}};

/// A number and a unit at the beginning of a text, which is cut off.
struct Length {
  double number = 0;
  std::optional<double> inches;  ///< of its unit; none: no unit stands there

  int pixels(double dpi) const {
    const double unit = inches.value_or(0);
    return static_cast<int>(
        std::lround(std::clamp(unit > 0 ? number * unit * dpi : number, 0.0, 10.0 * kMostPage)));
  }
};

std::optional<Length> take_length(std::string_view& text) {
  Length length;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), length.number,
                                            std::chars_format::fixed);
  if (error != std::errc() || !(length.number > 0) || !std::isfinite(length.number)) {
    return std::nullopt;
  }
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  for (const auto& [name, inches] : kUnits) {
    if (!text.starts_with(name)) continue;
    length.inches = inches;
    text.remove_prefix(name.size());
    break;
  }
  return length;
}

int checked_page(const Length& length, double dpi, const std::string& given) {
  const int pixels = length.pixels(dpi);
  if (pixels >= kLeastPage && pixels <= kMostPage) return pixels;
  throw usage_error(fmt::format("{}: {} pixels at {:g} dpi (valid {} to {})", given, pixels, dpi,
                                kLeastPage, kMostPage));
}

void set_width(const std::string& text, PictureStyle& look) {
  std::string_view rest = text;
  const auto length = take_length(rest);
  if (length && rest.empty() && !length->inches) {
    throw usage_error(fmt::format("--width {}: give a unit, {}mm or {}px", text, text, text));
  }
  if (!length || !rest.empty()) {
    throw usage_error(fmt::format(
        "--width {}: expected a length such as 85mm, 3.3in, 241pt or 900px", one_line(text)));
  }
  look.page_width = checked_page(*length, look.dpi, "--width " + text);
}

void set_size(const std::string& text, PictureStyle& look) {
  std::string_view rest = text;
  auto width = take_length(rest);
  const bool crossed = width && rest.starts_with('x');
  if (crossed) rest.remove_prefix(1);
  const auto height = crossed ? take_length(rest) : std::nullopt;
  if (height && rest.empty() && !width->inches && !height->inches) {
    throw usage_error(fmt::format("--size {}: give a unit, {}mm or {}px", text, text, text));
  }
  if (!height || !rest.empty() || !height->inches) {
    throw usage_error(
        fmt::format("--size {}: expected a box such as 170x80mm or 1920x1080px", one_line(text)));
  }
  if (!width->inches) width->inches = height->inches;
  look.page_width = checked_page(*width, look.dpi, "--size " + text);
  look.page_height = checked_page(*height, look.dpi, "--size " + text);
}

/// The complaint about a number that lies outside; empty: it does not.
std::function<std::string(const std::string&)> between(double least, double most) {
  return [least, most](const std::string& text) {
    double value = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    if (error == std::errc() && stop == end && value >= least && value <= most) {
      return std::string();
    }
    return fmt::format("expected a number from {:g} to {:g}", least, most);
  };
}

}  // namespace

void add_picture_options(CommandParser& command, PictureOptions& o, bool cells, bool films) {
  const auto add = [&](const char* name, auto& value, const char* help) {
    return command.add_option(name, value, help).group(kHeading);
  };
  add("--style", o.style,
      "dark, for screens; paper: white ground, small letters, 300 dpi; slide: white ground,\n"
      "large letters, 144 dpi")
      .one_of(style_names())
      .type_name("NAME");
  add("--width", o.width, "exactly how wide the page is: 85mm, 3.3in, 241pt, 900px")
      .type_name("LENGTH");
  add("--size", o.size, "how wide it is, and how high at most: 170x80mm, 1920x1080px")
      .type_name("WxH");
  add("--dpi", o.dpi, "pixels an inch; a .png tells them")
      .check(between(kLeastDpi, kMostDpi))
      .type_name("N");
  add("--font-size", o.font_size, "of its text, in points")
      .check(between(kLeastFont, kMostFont))
      .type_name("N");
  add("--title", o.title, "in place of its own title; none: neither title nor lines below it")
      .type_name("WORDS");
  add("--legend", o.legend, "colour bars: on or off").one_of({"on", "off"}).type_name("on|off");
  if (cells) {
    add("--cell", o.cell, "pixels of a cell's side").in_range(1, 1024).type_name("N");
  }
  if (!films) return;
  add("--frames", o.frames, "films: the latent frames that are drawn: 0,4,8-12").type_name("LIST");
  add("--columns", o.columns, "films: frames in a line; of a film that moves, heads")
      .in_range(1, 1000)
      .type_name("N");
}

void check_picture_options(const CommandParser& command, const std::string& out, bool films) {
  const std::string given = command.given_under({kHeading});
  if (given.empty()) return;
  const std::string ending = std::filesystem::path(out).extension().string();
  for (const std::string_view known : {".png", ".svg", ".pdf", ".gif", ".mp4"}) {
    if (ending == known) return;
  }
  throw usage_error(given + ": belongs to a picture (-o FILE.png, .svg, .pdf" +
                    (films ? ", .gif, .mp4)" : ")"));
}

PictureStyle style_of(const PictureOptions& o, const std::string& out) {
  PictureStyle look = picture_style(parse_style_name(o.style).value(), o.dpi, o.font_size);
  if (!o.width.empty() && !o.size.empty())
    throw usage_error("--width and --size: take one of them");
  if (!o.width.empty()) set_width(o.width, look);
  if (!o.size.empty()) set_size(o.size, look);
  look.cell = static_cast<int>(o.cell);
  look.legend = o.legend != "off";
  if (o.title) look.title = *o.title == "none" ? "" : *o.title;
  look.vector = is_vector_name(out);
  return look;
}

FilmStyle film_style_of(const PictureOptions& o, const std::string& out, int64_t frames) {
  FilmStyle film;
  film.look = style_of(o, out);
  film.columns = static_cast<int>(o.columns);
  film.over.line = film.look.px(film.over.line);
  if (o.frames.empty()) return film;
  const Selection list = Selection::parse(o.frames, "--frames");
  std::vector<int64_t> all(static_cast<size_t>(frames));
  for (size_t t = 0; t < all.size(); ++t) all[t] = static_cast<int64_t>(t);
  const std::vector<std::string> missing = list.missing(all);
  if (!missing.empty()) throw usage_error(missing.front());
  film.frames = list.resolve(all);
  return film;
}

void tell_large_film(const std::string& out, PageSize page, const FilmStyle& film,
                     const Console& console) {
  constexpr int kHigh = 6000;
  if (page.height <= kHigh) return;
  console.say(
      fmt::format("note: {} is {} × {} pixels; {}, --frames, more --columns or a smaller --cell "
                  "make it smaller",
                  one_line(out), page.width, page.height, film.fewer));
}

MemoryReservation reserve_page(MemoryBudget& budget, PageSize page) {
  const int64_t bytes = page_bytes(page);
  if (bytes <= budget.available()) return budget.reserve(bytes, "the picture");
  throw Error(
      ErrorCode::resource,
      fmt::format("the picture of {} × {} pixels needs {} of memory, and {} of {} are taken: "
                  "make it smaller (--cell, --width, fewer heads), or give more --memory",
                  page.width, page.height, format_bytes(bytes), format_bytes(budget.used()),
                  format_bytes(budget.limit())));
}

PlannedPicture planned_picture(PageSize page, const PictureStyle& look) {
  return {page.width, page.height, page_bytes(page), page_text(page.width, page.height, look)};
}

std::string page_text(int width, int height, const PictureStyle& look) {
  std::string text = fmt::format("{} × {} pixels", width, height);
  if (told_dpi(look) > 0) {
    text += fmt::format(", {:.1f} × {:.1f} mm at {:g} dpi", width / look.dpi * kMillimetresAnInch,
                        height / look.dpi * kMillimetresAnInch, look.dpi);
  }
  return text;
}

}  // namespace attnscope
