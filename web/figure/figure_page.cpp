#include "web/figure/figure_page.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "io/files/base64.h"
#include "io/files/json_types.h"
#include "web/figure/figure_parts.h"

namespace attnscope {
namespace {

using Append = std::function<void(std::string_view)>;

std::string_view text_of(std::span<const unsigned char> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void append_base64(std::span<const std::byte> bytes, const Append& append) {
  constexpr size_t kPiece = 48 * 1024;  // a multiple of 3
  for (size_t begin = 0; begin < bytes.size(); begin += kPiece) {
    append(to_base64(bytes.subspan(begin, std::min(kPiece, bytes.size() - begin))));
  }
}

/// Everything but the data.
void append_head(const FigurePage& page, const Append& append) {
  const std::string_view digest = figure_script_digest();
  append_page_head(page.title, {&digest, 1}, append);
  append("<style>\n");
  append(style_sheet(text_of(figure_style()), page.style));
  append(
      "</style>\n</head>\n<body>\n<noscript>This page computes an attention map: it needs "
      "JavaScript.</noscript>\n<div id=\"figure\"></div>\n");
  append("<script type=\"application/json\" id=\"facts\">");
  append(script_json(page.facts));
  append("</script>\n");
}

void append_tail(const Append& append) {
  append("<script>");
  append(text_of(figure_script()));
  append("</script>\n</body>\n</html>\n");
}

}  // namespace

void append_page_head(const std::string& title, std::span<const std::string_view> digests,
                      const Append& append) {
  append("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
  append("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src ");
  for (const std::string_view digest : digests) {
    append("'sha256-");
    append(digest);
    append("' ");
  }
  append(
      "'wasm-unsafe-eval' blob:; worker-src blob:; style-src 'unsafe-inline'; img-src data: "
      "blob:; base-uri 'none'; form-action 'none'\">\n");
  append("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
  append("<meta name=\"referrer\" content=\"no-referrer\">\n<title>");
  append(html_text(title));
  append("</title>\n");
}

std::string style_sheet(std::string_view sheet, PageStyle style) {
  std::string text(sheet);
  if (style == PageStyle::reader) return text;
  constexpr std::string_view kAsked = "(prefers-color-scheme: dark)";
  const std::string_view answer = style == PageStyle::dark ? "all" : "not all";
  for (size_t at = 0; (at = text.find(kAsked, at)) != std::string::npos; at += answer.size()) {
    text.replace(at, kAsked.size(), answer);
  }
  return text;
}

const std::vector<std::string>& page_style_names() {
  static const std::vector<std::string> names{"reader", "dark", "paper"};
  return names;
}

PageStyle parse_page_style(std::string_view name) {
  const auto& names = page_style_names();
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) throw usage_error("--style " + one_line(name) + ": no style of pages");
  return static_cast<PageStyle>(found - names.begin());
}

void append_page_data(const std::string& id, std::span<const std::byte> bytes,
                      const Append& append) {
  append("<script type=\"text/plain\" id=\"" + id + "\">");
  append_base64(bytes, append);
  append("</script>\n");
}

std::string html_text(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += c == '\0' ? ' ' : c;
    }
  }
  return escaped;
}

std::string script_json(const OrderedJson& json) {
  const std::string text = json.dump(-1, ' ', true, Json::error_handler_t::replace);
  std::string escaped;
  // ASCII alone by now: U+2028 and the like are \u2028 already. What is left stands in strings
  // only.
  for (const char c : text) {
    if (c == '<') {
      escaped += "\\u003c";
    } else if (c == '>') {
      escaped += "\\u003e";
    } else if (c == '&') {
      escaped += "\\u0026";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

int64_t figure_frame_bytes() {
  const size_t texts = figure_style().size() + figure_script().size();
  return static_cast<int64_t>(texts) + encoded_bytes(static_cast<int64_t>(figure_engine().size()));
}

void write_figure_page(const FigurePage& page, const Append& append) {
  append_head(page, append);
  append_page_data("data-engine", std::as_bytes(figure_engine()), append);
  for (const FigureBytes& data : page.data)
    append_page_data("data-" + data.name, data.bytes, append);
  append_tail(append);
}

}  // namespace attnscope
