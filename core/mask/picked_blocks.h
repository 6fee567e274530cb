#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/mask/mask.h"

namespace attnscope {

/// The blocks that a kernel cuts one side of a map into. Every token is in one of them, and a
/// block's tokens need not be neighbours. A value.
struct TokenBlocks {
  std::vector<int32_t> of_token;  ///< [tokens]: the number of the token's block
  std::vector<int64_t> lengths;   ///< [blocks]: tokens of the block, at least 1
  /// [blocks]: 1 where no selector chooses: all queries see these keys, these queries all keys.
  std::vector<uint8_t> exempt;

  int64_t size() const { return static_cast<int64_t>(lengths.size()); }
};

/// The pairs of blocks whose entries a kernel computes exactly. A value.
struct BlockPicks {
  TokenBlocks queries, keys;
  std::vector<uint8_t> kept;  ///< [query blocks, key blocks]: 1 = exact

  const uint8_t* row(int64_t query_block) const { return kept.data() + query_block * keys.size(); }
};

/// Terms of a row's softmax that stand for blocks of keys that a kernel does not compute exactly:
/// each weighs as many keys as the block has, at one logit, with the mean of their values
/// (Sol-Attn, arXiv:2607.24027). All in double. Immutable and thread-safe.
struct DroppedTerms {
  std::shared_ptr<const BlockPicks> picks;
  std::vector<double> key_means;    ///< [key blocks, d]
  std::vector<double> value_means;  ///< [key blocks, dv]; empty without V
  /// The logit's part that a block of queries shares, in natural units: [query blocks, key blocks].
  /// Empty: each query has a logit of its own, scale·q·(mean key).
  std::vector<double> shared;
  std::vector<double> centre;  ///< [d], with `shared`: each query adds scale·q·centre
  double scale = 1;

  /// Weights of one row's terms, and by what its other weights are multiplied beside them.
  struct Sum {
    double mass = 0, others = 1;
  };
  /// Adds the terms of the query at `index`, whose channels are `query` [d], to its output `out`
  /// [dv] of weights that are divided by e^lse. Where a term is larger than that, all weights are
  /// divided by the largest instead: `out` is multiplied by Sum::others before.
  Sum add(int64_t index, std::span<const double> query, double lse, std::span<double> out) const;
};

/// The entries of the picked pairs. `name` describes the mask. `terms`, where there are any, stand
/// for all others.
Mask picked_blocks_mask(std::shared_ptr<const BlockPicks> picks, std::string name,
                        std::shared_ptr<const DroppedTerms> terms = nullptr);

}  // namespace attnscope
