#pragma once

#include <string_view>

namespace attnscope {

/// Whether the bytes are UTF-8 as RFC 3629 defines it: no sequence longer than its character needs
/// (a name must not have two spellings), no surrogate, nothing above U+10FFFF.
bool valid_utf8(std::string_view text);

}  // namespace attnscope
