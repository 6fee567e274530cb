#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/index_range.h"
#include "core/mask/mask_blocks.h"
#include "core/mask/mask_term.h"
#include "core/tensor/tensor_source.h"

namespace attnscope {

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
  /// i + shift − left ≤ j ≤ i + shift + right; −1 stands for no end. With a shift of keys − queries
  /// the last query is at the last key, as flash-attention's window_size counts.
  static Mask window(int64_t left, int64_t right, int64_t shift);
  /// keys[batch item][j] ≠ 0 may be attended to; one list serves all batch items.
  static Mask keys(std::vector<std::vector<uint8_t>> valid);
  /// The first lengths[batch item] keys may be attended to; one number serves all items.
  static Mask key_lengths(std::vector<int64_t> lengths, int64_t num_keys);
  /// The keys of one range, the same for all batch items.
  static Mask key_range(IndexRange range, int64_t num_keys);
  /// Packed variable-length sequences: query i and key j must lie in the same segment. The lists
  /// are cumulative starts, from 0 to the sequence's length, as flash-attention's cu_seqlens.
  static Mask segments(std::vector<int64_t> cu_queries, std::vector<int64_t> cu_keys);
  static Mask blocks(const BlockMask& blocks);
  /// A tensor broadcastable to [B, H, Nq, Nk]: bool = may be attended to, floating = bias, which
  /// masks from kMaskedBias down (masked_bias.h). Nothing is read now. A tensor that does not
  /// depend on the query is read at the first use and kept as runs of equal biases (at most 64
  /// KiB); others are read rectangle by rectangle, and what their blocks of 128 x 128 hold is
  /// remembered in two bits each. classify(), fill_bias() and has_finite_bias() may thus throw
  /// Error(value) at NaN and +inf.
  static Mask tensor(std::shared_ptr<const TensorSource> source);

  /// A condition of the caller's own.
  static Mask term(MaskTermPtr term);
  /// Both conditions.
  Mask operator&(const Mask& other) const;

  bool is_none() const { return terms_.empty(); }
  /// That of its term (MaskTerm), as long as it is the only one.
  const DroppedTerms* dropped() const {
    return terms_.size() == 1 ? terms_.front()->dropped() : nullptr;
  }
  TileClass classify(int64_t batch, int64_t head, IndexRange queries, IndexRange keys) const;
  /// Writes the sum of the terms' biases, −inf where it is as low as a masked entry's
  /// (masked_bias.h); out need not be initialised. Layout as MaskTerm.
  void fill_bias(int64_t batch, int64_t head, std::span<const int64_t> queries, IndexRange keys,
                 float* out, int64_t row_stride) const;
  bool has_finite_bias() const;
  /// "none", or the terms joined by " & ".
  std::string describe() const;
  /// LSEs are kept by it: MaskTerm::identity() of each term.
  std::string identity() const;
  void check_shape(int64_t batch, int64_t heads, int64_t queries, int64_t keys) const;

 private:
  explicit Mask(MaskTermPtr term) : terms_{std::move(term)} {}
  std::string joined(std::string (MaskTerm::*text_of)() const) const;

  std::vector<MaskTermPtr> terms_;
};

}  // namespace attnscope
