#pragma once

#include <optional>
#include <string_view>

#include "core/base/error.h"

namespace attnscope {

/// The word for a kind of failure that programs read: "usage", "file", "value", "resource",
/// "unavailable", "interrupted".
std::string_view error_kind(ErrorCode code);
std::optional<ErrorCode> parse_error_kind(std::string_view word);

}  // namespace attnscope
