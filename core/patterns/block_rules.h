#pragma once

#include <stop_token>

#include "core/mask/picked_blocks.h"
#include "core/patterns/mask_pattern.h"
#include "core/patterns/scored_blocks.h"
#include "core/problem/token_grid.h"

namespace attnscope {

/// The blocks that the pattern's rule picks by their scores, as its kernel's code picks them, with
/// those that are kept whatever their scores are. `keys` is the grid of the keys. Throws
/// Error(interrupted) on a stop.
BlockPicks pick_blocks(const MaskPattern& pattern, const ScoredBlocks& scored,
                       const TokenGrid& keys, const std::stop_token& stop);
/// The tiles that `ssta` keeps of so many latent frames where nobody tells, as HunyuanVideo 1.5's
/// code has them.
int64_t usual_ssta_blocks(const TokenGrid& tokens);

}  // namespace attnscope
