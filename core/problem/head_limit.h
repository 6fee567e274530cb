#pragma once

#include <cstdint>
#include <string>

#include "core/tensor/layout.h"

namespace attnscope {

/// Heads that a call may have, of all batch items together: whoever lists, selects or measures
/// heads has an entry for each of them, however little a head holds.
inline constexpr int64_t kMaxCallHeads = 65'536;

/// "has 70000 heads (batch items x heads, limit 65536)"; empty where a call may have as many.
std::string too_many_heads(const HeadTensor& tensor);

}  // namespace attnscope
