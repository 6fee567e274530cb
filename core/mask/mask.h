#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/index_range.h"
#include "core/tensor/tensor_source.h"

namespace attnscope {

/// What a mask leaves of a rectangle.
enum class TileClass : uint8_t {
  empty,  ///< no entry may be attended to: nothing needs computing
  full,   ///< every entry may be attended to, with bias 0
  mixed,  ///< entries differ: add_bias tells
};

/// One condition of a Mask. Immutable and thread-safe. Indices must lie within the problem.
class MaskTerm {
 public:
  virtual ~MaskTerm() = default;
  virtual TileClass classify(int64_t batch, int64_t head, IndexRange queries,
                             IndexRange keys) const = 0;
  /// Adds this term's bias (0, −inf, or a finite number in logit units) for the rows `queries`
  /// (indices in the sequence, ascending) and `keys` to out[row · row_stride + key − keys.begin].
  virtual void add_bias(int64_t batch, int64_t head, std::span<const int64_t> queries,
                        IndexRange keys, float* out, int64_t row_stride) const = 0;
  /// Whether finite biases other than 0 can occur, not counting those that mask.
  virtual bool has_finite_bias() const { return false; }
  /// For attributes and messages: "causal", "window:128", "tensor" …
  virtual std::string describe() const = 0;
  /// Throws Error(usage) when the term does not fit a problem of this shape.
  virtual void check_shape(int64_t batch, int64_t heads, int64_t queries, int64_t keys) const = 0;
};

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

/// Which entries of the map may be attended to, and with which bias: a conjunction of terms (an
/// entry counts where every term lets it; biases add up). A value that shares its immutable terms;
/// thread-safe.
class Mask {
 public:
  /// No mask.
  Mask() = default;
  /// key j ≤ query i.
  static Mask causal();
  /// |i − j| ≤ reach.
  static Mask window(int64_t reach);
  /// keys[batch item][j] ≠ 0 may be attended to; one list serves all batch items.
  static Mask keys(std::vector<std::vector<uint8_t>> valid);
  /// The first lengths[batch item] keys may be attended to; one number serves all items.
  static Mask key_lengths(std::vector<int64_t> lengths, int64_t num_keys);
  /// The keys of one range, the same for all batch items.
  static Mask key_range(IndexRange range, int64_t num_keys);
  /// Packed variable-length sequences: query i and key j must lie in the same segment. The lists
  /// are cumulative starts, from 0 to the sequence's length, as flash-attention's cu_seqlens.
  static Mask segments(std::vector<int64_t> cu_queries, std::vector<int64_t> cu_keys);
  static Mask blocks(BlockMask blocks);
  /// A tensor broadcastable to [B, H, Nq, Nk]: bool = may be attended to, floating = bias, which
  /// masks from kMaskedBias down (masked_bias.h). Nothing is read now. A tensor that does not
  /// depend on the query is read at the first use and kept as runs of equal biases (at most 64
  /// KiB); others are read rectangle by rectangle, and what their blocks of 128 x 128 hold is
  /// remembered in two bits each. classify(), fill_bias() and has_finite_bias() may thus throw
  /// Error(value) at NaN and +inf.
  static Mask tensor(std::shared_ptr<const TensorSource> source);

  /// A condition of the caller's own.
  static Mask term(std::shared_ptr<const MaskTerm> term);
  /// An entry may be attended to where at least one of `masks` (not empty, without finite biases)
  /// lets it. A rectangle that only several of them cover together is told as mixed. Throws
  /// Error(usage) where a mask may hold finite biases.
  static Mask any_of(std::vector<Mask> masks);

  /// Both conditions.
  Mask operator&(const Mask& other) const;

  bool is_none() const { return terms_.empty(); }
  TileClass classify(int64_t batch, int64_t head, IndexRange queries, IndexRange keys) const;
  /// Writes the sum of the terms' biases, −inf where it is as low as a masked entry's
  /// (masked_bias.h); out need not be initialised. Layout as MaskTerm.
  void fill_bias(int64_t batch, int64_t head, std::span<const int64_t> queries, IndexRange keys,
                 float* out, int64_t row_stride) const;
  bool has_finite_bias() const;
  /// "none", or the terms joined by " & ".
  std::string describe() const;
  void check_shape(int64_t batch, int64_t heads, int64_t queries, int64_t keys) const;

 private:
  explicit Mask(std::shared_ptr<const MaskTerm> term) : terms_{std::move(term)} {}
  std::vector<std::shared_ptr<const MaskTerm>> terms_;
};

}  // namespace attnscope
