#include "viewer/remote/messages.h"

#ifndef __EMSCRIPTEN__
#include <zlib.h>
#endif

#include <array>
#include <charconv>
#include <cstring>

#include "core/base/error.h"
#include "core/base/version.h"

// How messages become bytes and come out of them again.

namespace attnscope {
namespace {

constexpr std::string_view kMark = "\nattnscope tiles ";
/// A login may print a page or two.
constexpr size_t kMostBeforeGreeting = size_t{256} << 10;
constexpr size_t kHeadBytes = 6;
/// Shorter bodies are not worth the call.
constexpr size_t kLeastDeflated = 512;

enum class Packing : uint8_t { plain = 0, deflated = 1 };

bool is_known(uint8_t type) {
  return (type >= static_cast<uint8_t>(MessageType::hello) &&
          type <= static_cast<uint8_t>(MessageType::pong)) ||
         (type >= static_cast<uint8_t>(MessageType::greeted) &&
          type <= static_cast<uint8_t>(MessageType::ping));
}

void put_length(std::string& bytes, size_t length) {
  for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>((length >> shift) & 0xff);
}

size_t get_length(std::string_view bytes) {
  size_t length = 0;
  for (size_t i = 0; i < 4; ++i) {
    length |= static_cast<size_t>(static_cast<uint8_t>(bytes[i])) << (8 * i);
  }
  return length;
}

#ifdef __EMSCRIPTEN__

// The WebSocket that carries frames to a browser deflates them itself.
std::string deflated(const std::string&) { return ""; }
std::string inflated(std::string_view, size_t) { fail_wire("a deflated message"); }

#else

/// The body deflated, its length in front; empty where that is not shorter.
std::string deflated(const std::string& body) {
  uLongf size = compressBound(static_cast<uLong>(body.size()));
  std::string packed;
  put_length(packed, body.size());
  packed.resize(4 + size);
  const int result =
      compress2(reinterpret_cast<Bytef*>(packed.data() + 4), &size,
                reinterpret_cast<const Bytef*>(body.data()), static_cast<uLong>(body.size()), 1);
  if (result != Z_OK || 4 + size >= body.size()) return "";
  packed.resize(4 + size);
  return packed;
}

std::string inflated(std::string_view packed, size_t most) {
  if (packed.size() < 4) fail_wire("a message that ends too early");
  const size_t size = get_length(packed);
  if (size > most) fail_wire("a message that is too long");
  // Deflate packs no more than some thousandfold: less of that was not sent by us.
  if (size / 1100 > packed.size()) fail_wire("a message that does not inflate");
  std::string body(size, '\0');
  uLongf got = size;
  const int result = uncompress(reinterpret_cast<Bytef*>(body.data()), &got,
                                reinterpret_cast<const Bytef*>(packed.data() + 4),
                                static_cast<uLong>(packed.size() - 4));
  if (result != Z_OK || got != size) fail_wire("a message that does not inflate");
  return body;
}

#endif

}  // namespace

std::string greeting() {
  return std::string(kMark) + std::to_string(kProtocol) + " " + std::string(version()) + "\n";
}

std::optional<Greeting> take_greeting(std::string& bytes) {
  const size_t at = bytes.find(kMark);
  const size_t end = at == std::string::npos ? at : bytes.find('\n', at + kMark.size());
  if (end == std::string::npos) {
    if (bytes.size() <= kMostBeforeGreeting) return std::nullopt;
    fail_wire("more than a login prints, and no greeting");
  }
  const std::string_view line =
      std::string_view(bytes).substr(at + kMark.size(), end - at - kMark.size());
  Greeting found;
  const auto [next, error] =
      std::from_chars(line.data(), line.data() + line.size(), found.protocol);
  if (error != std::errc() || next == line.data() + line.size() || *next != ' ') {
    fail_wire("a greeting without a number");
  }
  found.version = line.substr(static_cast<size_t>(next + 1 - line.data()));
  bytes.erase(0, end + 1);
  return found;
}

std::string to_frame(const Message& message, FramePacking packing) {
  std::string packed;
  if (packing == FramePacking::deflated && message.body.size() >= kLeastDeflated) {
    packed = deflated(message.body);
  }
  const std::string& body = packed.empty() ? message.body : packed;
  std::string frame;
  frame.reserve(kHeadBytes + body.size());
  put_length(frame, body.size() + 2);
  frame += static_cast<char>(message.type);
  frame += static_cast<char>(packed.empty() ? Packing::plain : Packing::deflated);
  return frame += body;
}

std::optional<Message> take_frame(std::string& bytes, size_t most) {
  if (bytes.size() < 4) return std::nullopt;
  const size_t length = get_length(bytes);
  if (length < 2) fail_wire("a message without a type");
  if (length - 2 > most) fail_wire("a message that is too long");
  if (bytes.size() < 4 + length) return std::nullopt;
  const auto type = static_cast<uint8_t>(bytes[4]);
  const auto packing = static_cast<uint8_t>(bytes[5]);
  if (!is_known(type)) fail_wire("a message of a type that there is none of");
  if (packing > static_cast<uint8_t>(Packing::deflated)) fail_wire("a message packed otherwise");
  Message message;
  message.type = static_cast<MessageType>(type);
  const std::string_view body = std::string_view(bytes).substr(kHeadBytes, length - 2);
  message.body =
      packing == static_cast<uint8_t>(Packing::deflated) ? inflated(body, most) : std::string(body);
  bytes.erase(0, 4 + length);
  return message;
}

}  // namespace attnscope
