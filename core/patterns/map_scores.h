#pragma once

#include <cstdint>

#include "core/mask/picked_blocks.h"
#include "core/patterns/block_scores.h"
#include "core/patterns/scored_head.h"

namespace attnscope {

/// Numbers of pairs of blocks that no means give: they come from every entry of the map.
enum class MapScore : uint8_t {
  mass,  ///< the sum of the weights
  /// The largest, over the block's queries, of their largest logit in this block of keys less
  /// their largest in this and all blocks before it.
  below_maximum
};

/// Streams the head's rows: [query blocks, key blocks]. Exact but for roundings of 2^-40 a row, and
/// the same whatever memory and threads are. Reserves what it takes. Throws Error(interrupted) on a
/// stop.
BlockTable map_scores(const ScoredHead& head, const TokenBlocks& queries, const TokenBlocks& keys,
                      MapScore which);
/// Bytes that it takes at least.
int64_t map_scores_bytes(const AttentionProblem& problem, const TileBackend& backend,
                         int64_t query_blocks, int64_t key_blocks);

}  // namespace attnscope
