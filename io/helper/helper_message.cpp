#include "io/helper/helper_message.h"

#include <cstring>

#include "core/base/error_kind.h"
#include "core/base/version.h"

namespace attnscope {
namespace {

constexpr size_t kLengthBytes = sizeof(uint64_t);

void append_length(std::string& bytes, uint64_t length) {
  char text[kLengthBytes];
  std::memcpy(text, &length, sizeof text);
  bytes.append(text, sizeof text);
}

/// Takes a length from the beginning of `bytes`, which has it.
uint64_t take_length(std::string_view& bytes) {
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  bytes.remove_prefix(sizeof length);
  return length;
}

}  // namespace

std::string pack_message(const HelperMessage& message) {
  uint64_t length = 0;
  for (const std::string& text : message) length += kLengthBytes + text.size();
  std::string bytes;
  bytes.reserve(kLengthBytes + length);
  append_length(bytes, length);
  for (const std::string& text : message) {
    append_length(bytes, text.size());
    bytes += text;
  }
  return bytes;
}

std::optional<HelperMessage> unpack_message(std::string_view bytes) {
  if (bytes.size() < kLengthBytes) return std::nullopt;
  const uint64_t length = take_length(bytes);
  if (length > kMostMessageBytes || bytes.size() > length) return HelperMessage{};
  if (bytes.size() < length) return std::nullopt;
  HelperMessage message;
  while (bytes.size() >= kLengthBytes) {
    const uint64_t text = take_length(bytes);
    if (text > bytes.size()) return HelperMessage{};
    message.emplace_back(bytes.substr(0, text));
    bytes.remove_prefix(text);
  }
  return bytes.empty() ? message : HelperMessage{};
}

HelperMessage helper_greeting() { return {"attnscope helper", std::string(version())}; }

HelperMessage pack_error(const Error& error) {
  return {std::string(error_kind(error.code())), error.what(), error.place().file,
          error.place().place};
}

std::optional<Error> unpack_error(const HelperMessage& message) {
  if (message.size() != 4) return std::nullopt;
  const auto code = parse_error_kind(message[0]);
  if (!code) return std::nullopt;
  return Error(*code, message[1], {message[2], message[3]});
}

}  // namespace attnscope
