#pragma once

#include <string>
#include <vector>

namespace attnscope {

/// The patterns that is_mask_word() is true of: "none", "window:N" …
std::vector<std::string> mask_words();

}  // namespace attnscope
