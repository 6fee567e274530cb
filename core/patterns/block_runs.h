#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/index_range.h"
#include "core/mask/picked_blocks.h"

namespace attnscope {

/// Neighbouring tokens of one block.
struct TokenRun {
  IndexRange tokens;
  int64_t block = 0;
};
/// The runs of all tokens, ascending; none crosses a multiple of `most` tokens.
std::vector<TokenRun> block_runs(const TokenBlocks& blocks, int64_t most);

/// The sum of up to 256 weights, in float32 lanes of at most 16 terms each, which are added in
/// double.
double weight_sum(const float* weights, int64_t count);

}  // namespace attnscope
