#pragma once

#include <cstdint>
#include <vector>

#include "core/mask/mask_term.h"

namespace attnscope {

/// A block mask: `bits[(head · query_blocks + qb) · key_blocks + kb]` ≠ 0 keeps block (qb, kb).
/// heads is 1 (all heads alike) or the number of heads. Blocks start at index 0 of the sequence.
struct BlockMask {
  int64_t heads = 1;
  int64_t query_blocks = 0;
  int64_t key_blocks = 0;
  int64_t block_queries = 0;
  int64_t block_keys = 0;
  std::vector<uint8_t> bits;
};

/// The term of Mask::blocks. Throws Error(usage) where the extents and the bits do not agree.
MaskTermPtr blocks_term(const BlockMask& blocks);

}  // namespace attnscope
