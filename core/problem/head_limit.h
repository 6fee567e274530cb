#pragma once

#include <cstdint>
#include <string>

#include "core/tensor/layout.h"

namespace attnscope {

/// Heads that a call may have, of all batch items together: whoever lists, selects or measures
/// heads has an entry for each of them, however little a head holds. Temporal attention of models
/// that attend within each pixel has a batch item for each: 72×128 of them, twice, with 5 heads are
/// 92 160.
inline constexpr int64_t kMaxCallHeads = 131'072;

/// "has 140000 heads (batch items x heads, limit 131072)"; empty where a call may have as many.
std::string too_many_heads(const HeadTensor& tensor);

}  // namespace attnscope
