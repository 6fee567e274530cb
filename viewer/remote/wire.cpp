#include "viewer/remote/wire.h"

#include "core/base/error.h"

namespace attnscope {

void fail_wire(std::string_view what) {
  throw Error(ErrorCode::file, "the other side sent what is no message: " + std::string(what));
}

void WireWriter::whole(uint64_t value) {
  while (value >= 0x80) {
    bytes_ += static_cast<char>(value | 0x80);
    value >>= 7;
  }
  bytes_ += static_cast<char>(value);
}

void WireWriter::planes(std::span<const std::byte> bytes, size_t width) {
  const size_t begin = bytes_.size();
  bytes_.resize(begin + bytes.size());
  const size_t count = bytes.size() / width;
  for (size_t plane = 0; plane < width; ++plane) {
    char* const to = bytes_.data() + begin + plane * count;
    for (size_t i = 0; i < count; ++i) to[i] = static_cast<char>(bytes[i * width + plane]);
  }
}

void WireReader::finish() const {
  if (!rest_.empty()) fail_wire("a message with more than belongs to it");
}

uint64_t WireReader::whole() {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (rest_.empty()) fail_wire("a message that ends too early");
    const auto byte = static_cast<uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    const uint64_t part = byte & 0x7f;
    if (shift == 63 && part > 1) break;
    value |= part << shift;
    if (byte < 0x80) return value;
  }
  fail_wire("a number that is too large");
}

std::string_view WireReader::raw(uint64_t size) {
  if (size > rest_.size()) fail_wire("a message that ends too early");
  const std::string_view bytes = rest_.substr(0, size);
  rest_.remove_prefix(size);
  return bytes;
}

void WireReader::planes(std::span<std::byte> bytes, size_t width) {
  const std::string_view from = raw(bytes.size());
  const size_t count = bytes.size() / width;
  for (size_t plane = 0; plane < width; ++plane) {
    const char* const begin = from.data() + plane * count;
    for (size_t i = 0; i < count; ++i) bytes[i * width + plane] = static_cast<std::byte>(begin[i]);
  }
}

}  // namespace attnscope
