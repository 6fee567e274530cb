#pragma once

#include <cstdint>

namespace attnscope {

/// Deflate packs no byte string into less than this share of it.
inline constexpr int64_t kMaxDeflateRatio = 1032;

}  // namespace attnscope
