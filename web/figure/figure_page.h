#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/files/json_types.h"

namespace attnscope {

/// Which ground a page has: its reader's browser chooses, or it is dark or white for all. Printed
/// pages are white.
enum class PageStyle : uint8_t { reader, dark, paper };
/// "reader", "dark", "paper".
const std::vector<std::string>& page_style_names();
/// Throws Error(usage) for other names.
PageStyle parse_page_style(std::string_view name);

/// Bytes that the page carries under a name.
struct FigureBytes {
  std::string name;  ///< letters, digits and '-'
  std::span<const std::byte> bytes;
};

/// The contents of a page beside the parts that all have (figure_parts.h). Texts may hold anything.
struct FigurePage {
  std::string title;
  const OrderedJson& facts;
  std::vector<FigureBytes> data;
  PageStyle style = PageStyle::reader;
};

/// Bytes that so many take in the page: base64.
constexpr int64_t encoded_bytes(int64_t bytes) { return (bytes + 2) / 3 * 4; }

/// Bytes that the parts take that are the same in all pages.
int64_t figure_frame_bytes();

/// The page as one HTML document, piece by piece. Nothing in it can be taken for markup or script
/// but what is: texts are escaped where they stand, and the page's policy allows its own script
/// alone and no address. Throws what `append` throws. `facts` with bytes that are no UTF-8 has them
/// replaced.
void write_figure_page(const FigurePage& page, const std::function<void(std::string_view)>& append);

// What pages of other kinds are made of as well (web/report).

/// A style sheet as pages of this style have it: its dark rules, which stand in `@media
/// (prefers-color-scheme: dark)`, hold always, never, or as the browser says.
std::string style_sheet(std::string_view sheet, PageStyle style);

/// From the document's begin to its title. The page may run the scripts of these digests (SHA-256
/// in base64) and what they start, and asks for no address.
void append_page_head(const std::string& title, std::span<const std::string_view> digests,
                      const std::function<void(std::string_view)>& append);
/// The bytes of an element `id` that no browser runs or shows.
void append_page_data(const std::string& id, std::span<const std::byte> bytes,
                      const std::function<void(std::string_view)>& append);
/// `text` within an element or a quoted attribute.
std::string html_text(std::string_view text);
/// JSON within a script element: no character that could end it, or that a script takes for a
/// line's end.
std::string script_json(const OrderedJson& json);

}  // namespace attnscope
