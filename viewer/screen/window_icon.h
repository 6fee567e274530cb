#pragma once

#include <cstdint>
#include <vector>

namespace attnscope {

/// The window's picture in lists of windows: a small attention map, tokens that look at themselves,
/// at their neighbours and at the first one. RGBA, `side` x `side` pixels, row by row.
std::vector<uint8_t> window_icon(int side);

}  // namespace attnscope
