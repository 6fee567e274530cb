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

/// What becomes of the blocks that a kernel does not compute exactly.
enum class BlockRest : uint8_t {
  renormalise,  ///< nothing: the kept weights are divided by their sum
  lost,         ///< nothing, and the kept weights stay as they are
  row,          ///< a term of the softmax a block, at the logit of the block's mean key
  centroid,     ///< the same at the logit that the block of queries has with it
  coarse,       ///< the output that the blocks' means have is added (VSA)
  linear        ///< the output of linear attention is added (SLA)
};

/// The pairs of blocks whose entries a kernel computes exactly. A value.
struct BlockPicks {
  static constexpr uint8_t kChosen = 1, kForced = 2;

  TokenBlocks queries, keys;
  /// [query blocks, key blocks]: 0 = dropped, kChosen by its score, kForced whatever that is.
  std::vector<uint8_t> kept;
  /// Pairs whose score lies so near to what decides that a kernel's rounding may decide otherwise.
  int64_t ties = 0;

  const uint8_t* row(int64_t query_block) const { return kept.data() + query_block * keys.size(); }
  /// Kept entries, of all.
  double density() const;
  /// Kept pairs of blocks, of all: what a kernel visits.
  double visited() const;
};

/// The blocks of a kernel, and what becomes of those that it drops. With `row` and `centroid`,
/// terms of a row's softmax stand for them: each weighs as many keys as the block has, at one
/// logit, with the mean of their values (Sol-Attn, arXiv:2607.24027). All in double. Immutable and
/// thread-safe.
struct DroppedTerms {
  std::shared_ptr<const BlockPicks> picks;
  BlockRest rest = BlockRest::renormalise;
  std::vector<double> key_means;    ///< row: [key blocks, d]
  std::vector<double> value_means;  ///< row, centroid: [key blocks, dv]; empty without V
  /// centroid: the logit's part that a block of queries shares, in natural units, [query blocks,
  /// key blocks].
  std::vector<double> shared;
  std::vector<double> centre;  ///< centroid: [d]; each query adds scale·q·centre
  double scale = 1;
  double gate = 1;             ///< coarse, linear: by what the branch is multiplied
  std::vector<double> coarse;  ///< coarse: its output, [query blocks, dv]
  /// linear: Σ φ(k), [d], and Σ φ(k)·v, [d, dv], over all keys; φ is a softmax over channels.
  std::vector<double> linear_keys, linear_values;

  bool has_terms() const { return rest == BlockRest::row || rest == BlockRest::centroid; }
  /// True where the query's channels are wanted.
  bool needs_query() const { return has_terms() || rest == BlockRest::linear; }

  /// Weights of one row's terms, and by what its other weights are multiplied beside them.
  struct Sum {
    double mass = 0, others = 1;
  };
  /// A row's terms: for each block of keys, the weight that one of its keys has beside weights
  /// which are divided by e^lse, times Sum::others; 0 where the block is kept.
  struct Weights {
    Sum sum;
    std::vector<double> of_key;  ///< [key blocks]
  };
  /// Of the query at `index`, whose channels are `query` [d]. Where a term is larger than all
  /// others, all are divided by it instead of by e^lse: by that Sum::others is not 1.
  Weights weights(int64_t index, std::span<const double> query, double lse) const;
  /// Adds the terms' values to the row's output `out` [dv], which is multiplied by Sum::others
  /// before.
  void add(const Weights& weights, std::span<double> out) const;
  /// Adds the branch of the query at `index` to its output, which is divided by its weights.
  void add_branch(int64_t index, std::span<const double> query, std::span<double> out) const;
};

/// The entries of the picked pairs. `name` describes the mask.
Mask picked_blocks_mask(std::shared_ptr<const DroppedTerms> blocks, std::string name);
/// The exponentials of the numbers, divided by their sum.
void soft_shares(std::span<double> numbers);

}  // namespace attnscope
