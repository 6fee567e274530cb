#pragma once

#include <string>
#include <vector>

namespace attnscope {

/// The names that parse_layout() knows.
std::vector<std::string> layout_names();

}  // namespace attnscope
