#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/base/index_range.h"

namespace attnscope {

/// The class of a rectangle of a mask: which of its entries may be attended to.
enum class TileClass : uint8_t {
  empty,  ///< no entry may be attended to: nothing needs computing
  full,   ///< every entry may be attended to, with bias 0
  mixed,  ///< entries differ: add_bias tells
};

struct DroppedTerms;

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
  /// True where finite biases other than 0 can occur, not counting those that mask.
  virtual bool has_finite_bias() const { return false; }
  /// For attributes and messages: "causal", "window:128", "tensor" …
  virtual std::string describe() const = 0;
  /// Terms of one shape with equal texts have the same entries, those of tensors aside.
  virtual std::string identity() const { return describe(); }
  /// What a kernel of it puts in place of the entries that it drops; null: nothing.
  virtual const DroppedTerms* dropped() const { return nullptr; }
  /// Throws Error(usage) when the term does not fit a problem of this shape.
  virtual void check_shape(int64_t batch, int64_t heads, int64_t queries, int64_t keys) const = 0;
};

/// Terms are shared by the masks that have them.
using MaskTermPtr = std::shared_ptr<const MaskTerm>;

}  // namespace attnscope
