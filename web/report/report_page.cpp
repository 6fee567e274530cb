#include "web/report/report_page.h"

#include <array>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <span>

#include "io/pictures/colormap.h"
#include "web/figure/figure_parts.h"
#include "web/report/report_parts.h"

namespace attnscope {
namespace {

/// Where the page goes: to whoever writes it, or only its size is wanted.
struct ReportOutput {
  std::function<void(std::string_view)> text;
  std::function<void(const std::string& id, std::span<const std::byte>)> data;
};

std::string_view part_text(std::span<const unsigned char> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// 256 colours of 3 bytes.
constexpr size_t kColourBytes = 768;
std::array<std::byte, kColourBytes> colour_table() {
  std::array<std::byte, kColourBytes> table{};
  for (size_t i = 0; i < kColourBytes / 3; ++i) {
    const Rgb colour = colormap_at(Colormap::viridis, static_cast<double>(i) / 255.0);
    table[3 * i] = std::byte{colour.r};
    table[3 * i + 1] = std::byte{colour.g};
    table[3 * i + 2] = std::byte{colour.b};
  }
  return table;
}

/// An element that holds text which no browser runs or shows.
void append_quiet(const ReportOutput& out, const std::string& type, const std::string& id,
                  std::string_view text) {
  out.text("<script type=\"" + type + "\" id=\"" + id + "\">");
  out.text(text);
  out.text("</script>\n");
}

std::string text_of(const OrderedJson& json) {
  return json.is_string() ? json.get<std::string>() : script_json(json);
}

/// What a browser without JavaScript shows.
std::string plain_page(const ReportPage& page) {
  std::string text = "<noscript>\n<h1>" + html_text(page.title) +
                     "</h1>\n<p>This page draws its maps and tables by JavaScript, which is off "
                     "here.</p>\n";
  const OrderedJson problems = page.facts.value("problems", OrderedJson::array());
  if (!problems.empty()) {
    text += "<h2>What could not be read</h2>\n<ul>\n";
    for (const OrderedJson& each : problems) {
      text += "<li>" + html_text(text_of(each)) + "</li>\n";
    }
    text += "</ul>\n";
  }
  text += "<dl>\n";
  for (const OrderedJson& each : page.facts.value("about", OrderedJson::array())) {
    text += "<dt>" + html_text(text_of(each.value("label", OrderedJson("")))) + "</dt><dd>" +
            html_text(text_of(each.value("text", OrderedJson("")))) + "</dd>\n";
  }
  return text + "</dl>\n</noscript>\n";
}

void append_figures(const ReportPage& page, const ReportOutput& out) {
  if (page.figures.empty()) return;
  append_quiet(out, "text/plain", "figure-style",
               style_sheet(part_text(figure_style()), page.style));
  append_quiet(out, "text/plain", "figure-script", part_text(figure_script()));
  append_quiet(out, "text/plain", "figure-digest", figure_script_digest());
  out.data("figure-engine", std::as_bytes(figure_engine()));
  for (size_t i = 0; i < page.figures.size(); ++i) {
    const ReportFigure& figure = page.figures[i];
    const std::string id = "figure-" + std::to_string(i);
    append_quiet(out, "application/json", id, script_json(figure.facts));
    for (const FigureBytes& data : figure.data) out.data(id + "-" + data.name, data.bytes);
  }
}

void append_report(const ReportPage& page, const ReportOutput& out) {
  const std::array<std::string_view, 2> digests{report_script_digest(), figure_script_digest()};
  append_page_head(page.title, std::span(digests).first(page.figures.empty() ? 1 : 2), out.text);
  out.text("<style>\n");
  out.text(style_sheet(part_text(report_style()), page.style));
  out.text("</style>\n</head>\n<body>\n");
  out.text(plain_page(page));
  out.text("<div id=\"report\"></div>\n");
  append_quiet(out, "application/json", "facts", script_json(page.facts));
  const auto colours = colour_table();
  out.data("data-colours", colours);
  for (const FigureBytes& data : page.data) out.data("data-" + data.name, data.bytes);
  append_figures(page, out);
  out.text("<script>");
  out.text(part_text(report_script()));
  out.text("</script>\n</body>\n</html>\n");
}

}  // namespace

int64_t report_frame_bytes(bool with_figures) {
  size_t bytes = report_style().size() + report_script().size();
  if (with_figures) bytes += figure_style().size() + figure_script().size();
  const size_t data = kColourBytes + (with_figures ? figure_engine().size() : 0);
  return static_cast<int64_t>(bytes) + encoded_bytes(static_cast<int64_t>(data));
}

int64_t report_bytes(const ReportPage& page) {
  int64_t bytes = 0;
  const auto count = [&](std::string_view text) { bytes += static_cast<int64_t>(text.size()); };
  append_report(page, {count, [&](const std::string& id, std::span<const std::byte> data) {
                         append_page_data(id, {}, count);
                         bytes += encoded_bytes(static_cast<int64_t>(data.size()));
                       }});
  return bytes;
}

void write_report_page(const ReportPage& page,
                       const std::function<void(std::string_view)>& append) {
  append_report(page, {append, [&](const std::string& id, std::span<const std::byte> data) {
                         append_page_data(id, data, append);
                       }});
}

}  // namespace attnscope
