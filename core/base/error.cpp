#include "core/base/error.h"

#include <array>
#include <system_error>

namespace attnscope {
namespace {

/// Of a long text this much of its beginning and of its end are kept.
constexpr size_t kHeadBytes = 800;
constexpr size_t kTailBytes = 400;

bool continues_utf8(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

void append_printable(std::string& line, std::string_view text) {
  constexpr std::array<char, 17> kDigits{"0123456789abcdef"};
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    // U+0080 to U+009F are control characters as well: \xc2 and \x80 to \x9f in UTF-8.
    const bool wide = c == 0xc2 && i + 1 < text.size() &&
                      static_cast<unsigned char>(text[i + 1]) >= 0x80 &&
                      static_cast<unsigned char>(text[i + 1]) < 0xa0;
    if (c == '\n') {
      line += "\\n";
    } else if (c == '\t') {
      line += "\\t";
    } else if (c < 0x20 || c == 0x7f || wide) {
      const auto code = wide ? static_cast<unsigned char>(text[++i]) : c;
      line += {'\\', 'x', kDigits[code >> 4], kDigits[code & 15]};
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
