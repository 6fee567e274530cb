#pragma once

#include <string_view>

namespace attnscope {

/// Whether the bytes have the form of UTF-8: lead and continuation bytes fit each other.
bool valid_utf8(std::string_view text);

}  // namespace attnscope
