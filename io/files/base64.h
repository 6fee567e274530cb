#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace attnscope {

/// Bytes as base64 with padding (RFC 4648, section 4).
std::string to_base64(std::span<const std::byte> bytes);

/// Fills `bytes` with what to_base64() made a text of; false where the text is none, or is of
/// another number of bytes.
bool from_base64(std::string_view text, std::span<std::byte> bytes);

}  // namespace attnscope
