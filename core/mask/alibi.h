#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/mask/mask.h"

namespace attnscope {

/// Linear biases (ALiBi, Press et al. 2021) of one call: −slope·|query + shift − key| is added to
/// the logits, with shift = keys − queries, so that the last query and the last key are at one
/// place (as flash-attention has it).
struct AlibiSlopes {
  std::array<int64_t, 2> shape{1, 1};  ///< batch items and query heads, each all or 1 for all
  std::vector<float> each;             ///< of the shape, heads contiguous; finite
};

/// Throws Error(value) naming the first slope that is not finite.
Mask alibi_mask(AlibiSlopes slopes, int64_t shift);

}  // namespace attnscope
