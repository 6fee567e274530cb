#pragma once

#include <cstdint>
#include <vector>

#include "core/mask/mask.h"

namespace attnscope {

/// Which blocks of `block` keys, from key 0 on, the mask leaves anything of in the rows `queries`:
/// one byte a block, 1 = something is kept. Exact.
std::vector<uint8_t> kept_blocks(const Mask& mask, int64_t batch, int64_t head, IndexRange queries,
                                 int64_t num_keys, int64_t block);

}  // namespace attnscope
