#pragma once

#include <cstdint>

#include "core/mask/mask.h"

namespace attnscope {

/// The keys up to the end of the block of `block` tokens that the query is in, by place in the
/// sequence: ⌊key / block⌋ ≤ ⌊query / block⌋. Throws Error(usage) where `block` is below 1.
Mask block_causal_mask(int64_t block);

}  // namespace attnscope
