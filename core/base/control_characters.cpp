#include "core/base/control_characters.h"

#include <algorithm>

namespace attnscope {
namespace {

bool is_control(uint32_t code) {
  const auto within = [code](uint32_t first, uint32_t last) {
    return code >= first && code <= last;
  };
  return code < 0x20 || within(0x7f, 0x9f) || code == 0x061c || code == 0x200b ||
         within(0x200e, 0x200f) || within(0x2028, 0x202e) || within(0x2060, 0x206f) ||
         code == 0xfeff || within(0xfff9, 0xfffb);
}

void append_hex(std::string& text, uint32_t code, int digits) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  while (digits-- > 0) text += kDigits[code >> 4 * digits & 15];
}

/// \n, \t, \x1b or \u202e.
void append_escape(std::string& line, uint32_t code) {
  if (code == '\n' || code == '\t') {
    line += code == '\n' ? "\\n" : "\\t";
    return;
  }
  line += code < 0x100 ? "\\x" : "\\u";
  append_hex(line, code, code < 0x100 ? 2 : 4);
}

/// `text`, in which `escape` appends something else for the control characters that it is true of.
template <class Escape>
std::string replace_controls(std::string_view text, const Escape& escape) {
  std::string result;
  result.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const auto control = control_character_at(text, i);
    if (control && escape(result, control->code)) {
      i += control->bytes - 1;
    } else {
      result += text[i];
    }
  }
  return result;
}

}  // namespace

std::optional<ControlCharacter> control_character_at(std::string_view text, size_t i) {
  const auto byte = [&](size_t k) { return static_cast<unsigned char>(text[k]); };
  const uint32_t first = byte(i);
  if (first < 0x80) {
    return is_control(first) ? std::optional(ControlCharacter{first, 1}) : std::nullopt;
  }
  const size_t bytes = first >> 5 == 6 ? 2 : first >> 4 == 14 ? 3 : 0;
  if (bytes == 0 || bytes > text.size() - i) return std::nullopt;
  uint32_t code = first & (bytes == 2 ? 0x1f : 0x0f);
  for (size_t k = 1; k < bytes; ++k) {
    if (byte(i + k) >> 6 != 2) return std::nullopt;
    code = code << 6 | (byte(i + k) & 0x3f);
  }
  return code >= 0x80 && is_control(code) ? std::optional(ControlCharacter{code, bytes})
                                          : std::nullopt;
}

std::string without_controls(std::string_view text) {
  return replace_controls(text, [](std::string& line, uint32_t code) {
    append_escape(line, code);
    return true;
  });
}

std::string lines_without_controls(std::string_view text) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    if (end < text.size() && line.ends_with('\r')) line.remove_suffix(1);
    result += replace_controls(line, [](std::string& to, uint32_t code) {
      if (code == '\t') return false;
      append_escape(to, code);
      return true;
    });
    if (end < text.size()) result += '\n';
    at = end + 1;
  }
  return result;
}

size_t whole_characters(std::string_view text) {
  if (text.ends_with('\r')) return text.size() - 1;
  // The last byte that begins a character, and whether it has all that it announces.
  for (size_t back = 1; back <= std::min<size_t>(text.size(), 3); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if (byte >> 6 == 2) continue;
    const size_t bytes = byte >> 5 == 6 ? 2 : byte >> 4 == 14 ? 3 : byte >> 3 == 30 ? 4 : 1;
    return bytes > back ? text.size() - back : text.size();
  }
  return text.size();
}

std::string json_without_controls(std::string json) {
  // Below are white space between values alone: within strings JSON has none of them.
  const auto escape = [](std::string& text, uint32_t code) {
    if (code < 0x7f) return false;
    text += "\\u";
    append_hex(text, code, 4);
    return true;
  };
  for (size_t i = 0; i < json.size(); ++i) {
    // Most of a text that may be long.
    if (static_cast<unsigned char>(json[i]) < 0x7f) continue;
    if (control_character_at(json, i)) return replace_controls(json, escape);
  }
  return json;
}

}  // namespace attnscope
