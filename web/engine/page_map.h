#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/problem/attention_problem.h"
#include "core/stream/tile_backend.h"
#include "web/engine/page_mask.h"

namespace attnscope {

/// One head as a page has it: all of a map, or the queries and keys that were chosen of it.
struct PageHead {
  DType dtype = DType::f32;
  int64_t queries = 0, keys = 0, dim = 0;
  double scale = 0;
  ScoreFunction score = ScoreFunction::softmax;
  /// True where `k` has all that the rows are normalised over, all keys and no sink beside them;
  /// else only `norms` tells their sums.
  bool all_keys = true;
  const std::byte* q = nullptr;  ///< [queries, dim], packed
  const std::byte* k = nullptr;  ///< [keys, dim], packed
  /// Of each row, over all keys of the map; empty for scores that are not normalised. Those of
  /// whoever made the page: they may differ from this machine's in the last bits.
  std::vector<RowNorm> norms;
  std::optional<PageMask> mask;
};

/// The problem that a page computes, and that whoever makes the page pools its base of: queries and
/// keys that were chosen, one head. Copies q and k and takes the mask. Throws Error(usage) where
/// the parts do not fit each other.
AttentionProblem page_problem(PageHead& head);

/// Adds a row of `count` entries to a row of texels of `side` entries each.
void pool_row(const float* entries, int64_t count, int64_t side, float* max, double* sum);

/// One head whose numbers are computed here, in one thread. Owns what it was made of.
class PageMap {
 public:
  /// Copies q and k. Throws Error(usage) where the parts do not fit each other.
  explicit PageMap(PageHead head);

  int64_t queries() const { return problem_.num_queries(); }
  int64_t keys() const { return problem_.num_keys(); }

  /// The entries of rows × keys, row after row. With `own` weights are divided by sums that are
  /// computed here where all keys are (a row's are kept), so that each number is what
  /// the CPU backend without fused multiply-adds gives; else by those that the page came with.
  /// Until the next call. Ranges must lie within the map.
  std::span<const float> entries(IndexRange rows, IndexRange keys, Quantity quantity, bool own);

  /// Largest weight and mean weight of texels of 2^level × 2^level entries, those at the map's far
  /// edges of what there is: rows × cols of them, in `max` and `mean`, row after row.
  void texels(int level, IndexRange rows, IndexRange cols, float* max, float* mean);

  /// ln of the row's normaliser, computed here where all keys are; NaN for scores that have none.
  double lse(int64_t row);

 private:
  std::span<const RowNorm> own_norms(IndexRange rows, const QueryBlock& block);
  void compute(IndexRange rows, IndexRange keys, Quantity quantity, bool own, float* out);

  const std::unique_ptr<TileBackend> backend_;
  const AttentionProblem problem_;
  const std::unique_ptr<BoundHead> head_;
  const bool all_keys_;
  const std::vector<RowNorm> given_norms_;
  std::vector<RowNorm> own_norms_;
  std::vector<uint8_t> has_own_norm_;
  std::vector<int64_t> index_;
  std::vector<std::byte> queries_, workspace_;
  std::vector<float> entries_;
};

}  // namespace attnscope
