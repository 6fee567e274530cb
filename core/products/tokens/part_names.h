#pragma once

#include <string>
#include <vector>

#include "core/problem/token_grid.h"

namespace attnscope {

/// The names of the parts of a map of text and frames (text_and_frames()): "text", "t0", "t1" … and
/// other segments; "video" where it has no frames. Of parts without tokens they are empty.
std::vector<std::string> part_names(const TokenGrid& tokens);

}  // namespace attnscope
