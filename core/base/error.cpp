#include "core/base/error.h"

#include <system_error>
#include <utility>

#include "core/base/control_characters.h"

namespace attnscope {
namespace {

/// Of a long text this much of its beginning and of its end are kept.
constexpr size_t kHeadBytes = 800;
constexpr size_t kTailBytes = 400;

bool continues_utf8(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

}  // namespace

std::string one_line(std::string_view text) {
  if (text.size() <= kHeadBytes + kTailBytes) return without_controls(text);
  size_t head = kHeadBytes;
  while (head > kHeadBytes - 4 && continues_utf8(text[head])) --head;
  size_t tail = text.size() - kTailBytes;
  while (tail < text.size() - kTailBytes + 4 && continues_utf8(text[tail])) ++tail;
  return without_controls(text.substr(0, head)) + " [...] " + without_controls(text.substr(tail));
}

Error::Error(ErrorCode code, const std::string& message) : Error(code, message, {}) {}

Error::Error(ErrorCode code, const std::string& message, Place place)
    : std::runtime_error(one_line(message)),
      code_(code),
      place_(std::make_shared<const Place>(std::move(place))) {}

Error file_error(std::string_view file, std::string_view where, std::string_view what) {
  std::string message(file);
  if (!where.empty()) message.append(": ").append(where);
  message.append(": ").append(what);
  return Error(ErrorCode::file, message, {std::string(file), std::string(where)});
}

Error usage_error(std::string_view what) { return Error(ErrorCode::usage, std::string(what)); }

std::string errno_text(int error_number) { return std::generic_category().message(error_number); }

}  // namespace attnscope
