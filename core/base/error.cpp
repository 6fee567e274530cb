#include "core/base/error.h"

#include <array>
#include <cstdint>
#include <optional>
#include <system_error>

namespace attnscope {
namespace {

/// Of a long text this much of its beginning and of its end are kept.
constexpr size_t kHeadBytes = 800;
constexpr size_t kTailBytes = 400;

bool continues_utf8(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

/// A control character, and how many bytes of UTF-8 it takes.
struct Control {
  uint32_t code = 0;
  size_t bytes = 1;
};

/// The one that begins at byte `i`, if one does: C0, DEL, C1, the separators of lines and
/// paragraphs, and those that turn the direction in which a terminal shows what follows, so that
/// one name could pass for another.
std::optional<Control> control_at(std::string_view text, size_t i) {
  const auto low_bits = [&](size_t k) -> std::optional<uint32_t> {
    if (k >= text.size() || !continues_utf8(text[k])) return std::nullopt;
    return static_cast<unsigned char>(text[k]) & 0x3f;
  };
  const uint32_t first = static_cast<unsigned char>(text[i]);
  if (first < 0x20 || first == 0x7f) return Control{first, 1};
  const auto second = low_bits(i + 1);
  if (!second) return std::nullopt;
  if (first == 0xc2 && *second < 0x20) return Control{0x80 | *second, 2};
  if (first == 0xd8 && *second == 0x1c) return Control{0x61c, 2};
  const auto third = low_bits(i + 2);
  if (first != 0xe2 || !third) return std::nullopt;
  const uint32_t code = 0x2000 | *second << 6 | *third;
  const bool turns = code == 0x200e || code == 0x200f || (code >= 0x202a && code <= 0x202e) ||
                     (code >= 0x2066 && code <= 0x2069);
  if (turns || code == 0x2028 || code == 0x2029) return Control{code, 3};
  return std::nullopt;
}

/// \n, \t, \x1b or \u202e.
void append_escaped(std::string& line, uint32_t code) {
  constexpr std::array<char, 17> kDigits{"0123456789abcdef"};
  if (code == '\n' || code == '\t') {
    line += code == '\n' ? "\\n" : "\\t";
    return;
  }
  line += code < 0x100 ? "\\x" : "\\u";
  for (int shift = code < 0x100 ? 4 : 12; shift >= 0; shift -= 4) {
    line += kDigits[code >> shift & 15];
  }
}

void append_printable(std::string& line, std::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    const auto control = control_at(text, i);
    if (control) {
      append_escaped(line, control->code);
      i += control->bytes - 1;
    } else {
      line += text[i];
    }
  }
}

}  // namespace

std::string one_line(std::string_view text) {
  std::string line;
  if (text.size() <= kHeadBytes + kTailBytes) {
    append_printable(line, text);
    return line;
  }
  size_t head = kHeadBytes;
  while (head > kHeadBytes - 4 && continues_utf8(text[head])) --head;
  size_t tail = text.size() - kTailBytes;
  while (tail < text.size() - kTailBytes + 4 && continues_utf8(text[tail])) ++tail;
  append_printable(line, text.substr(0, head));
  line += " [...] ";
  append_printable(line, text.substr(tail));
  return line;
}

Error::Error(ErrorCode code, const std::string& message)
    : std::runtime_error(one_line(message)), code_(code) {}

Error file_error(std::string_view file, std::string_view where, std::string_view what) {
  std::string message(file);
  if (!where.empty()) message.append(": ").append(where);
  message.append(": ").append(what);
  return Error(ErrorCode::file, message);
}

Error usage_error(std::string_view what) { return Error(ErrorCode::usage, std::string(what)); }

std::string errno_text(int error_number) { return std::generic_category().message(error_number); }

}  // namespace attnscope
