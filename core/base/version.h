#pragma once

#include <string_view>

namespace attnscope {

/// "0.1.0".
std::string_view version();

}  // namespace attnscope
