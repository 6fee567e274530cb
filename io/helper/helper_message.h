#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"

namespace attnscope {

/// A message between the helper and its parent: a list of strings of any bytes. It goes as its
/// length in bytes, then every string with its length before it; lengths take 8 bytes.
using HelperMessage = std::vector<std::string>;

/// No message is longer.
constexpr uint64_t kMostMessageBytes = uint64_t{1} << 30;

/// The bytes of a message, whose strings fit within kMostMessageBytes.
std::string pack_message(const HelperMessage& message);

/// The message that the bytes begin with, which are all that has come so far: nothing while it is
/// not whole, one without strings where they are none of a message.
std::optional<HelperMessage> unpack_message(std::string_view bytes);

/// The message of a helper that is ready. A program of another version sends another one.
HelperMessage helper_greeting();

/// The first string of an answer; its JSON is the second.
constexpr std::string_view kHelperAnswer = "answer";

/// An error instead of an answer.
HelperMessage pack_error(const Error& error);

/// The error that a message is; nothing where it is none.
std::optional<Error> unpack_error(const HelperMessage& message);

}  // namespace attnscope
