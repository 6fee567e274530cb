#pragma once

#include <cstdint>
#include <memory>

#include "core/mask/mask.h"
#include "core/tensor/tensor_source.h"

namespace attnscope {

/// The blocks of `block_queries` x `block_keys` tokens (at least 1 each) that `blocks` marks: bool
/// [B or 1, H or 1, query blocks, key blocks], from the first token on, the last blocks cut where
/// the map ends. Those of a batch item and head are read at their first use and kept as one bit
/// each. Throws Error(usage) where `blocks` is of another type or has other axes; the mask's
/// members may throw what reading throws. Blocks in memory are Mask::blocks.
Mask recorded_blocks_mask(std::shared_ptr<const TensorSource> blocks, int64_t block_queries,
                          int64_t block_keys);

}  // namespace attnscope
