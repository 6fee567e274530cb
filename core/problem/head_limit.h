#pragma once

#include <cstdint>
#include <string>

#include "core/tensor/layout.h"

namespace attnscope {

/// Heads that a call may have, of all batch items together: whoever lists, selects or measures
/// heads has an entry for each of them, however little a head holds. Temporal attention of models
/// that attend within each pixel has a batch item for each: 68×120 of them, twice, with 16 heads
/// are 261 120.
inline constexpr int64_t kMaxCallHeads = 262'144;

/// "has 300000 heads (batch items x heads, limit 262144)"; empty where a call may have as many.
std::string too_many_heads(const HeadTensor& tensor);

}  // namespace attnscope
