#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace attnscope {

/// A character that steers a terminal or is not to be seen in a text, so that one name could pass
/// for another: C0, DEL, C1, the separators of lines and paragraphs, marks and turns of the
/// direction of writing, invisible operators, the byte order mark. Those that join and part the
/// letters of a script (U+200C, U+200D) are none.
struct ControlCharacter {
  uint32_t code = 0;
  size_t bytes = 1;  ///< of UTF-8
};

/// The one that begins at byte `i`, if one does.
std::optional<ControlCharacter> control_character_at(std::string_view text, size_t i);

/// `text` with its control characters as \n, \t, \x1b or \u202e.
std::string without_controls(std::string_view text);

/// `text` in whole lines, as without_controls() but for what ends lines (\n, \r\n) and tabs.
std::string lines_without_controls(std::string_view text);

/// Where a character of UTF-8, or a \r that may belong to a \n, begins at the end of `text` that is
/// not whole yet; its size where none is.
size_t whole_characters(std::string_view text);

/// Rewrites the JSON text `json` to one of the same value, in whose strings control characters are
/// escaped: \u009b, \u202e. Line breaks between values stay.
std::string json_without_controls(std::string json);

}  // namespace attnscope
