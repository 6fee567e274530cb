#pragma once

#include <cstdint>
#include <vector>

#include "viewer/view/maps/map_tile.h"

namespace attnscope {

/// One row of texels while entries are added: the largest and the sum of each texel's entries.
/// Masked logits (−inf) are left out, so those that were not are counted; weights need no count.
struct TexelRow {
  std::vector<float> max;
  std::vector<double> sum;
  std::vector<int64_t> count;  ///< logits and differences only
  bool by_size = false;        ///< `max` is the one of the largest size, with its sign

  TexelRow() = default;
  TexelRow(int64_t texels, Quantity quantity);
  /// Of differences, which may be below 0: −inf is left out, as of logits.
  static TexelRow of_differences(int64_t texels);

  /// Adds `entries` entries of one row of the map, the first of which is at the left edge of texel
  /// `first`; a texel is `width` entries wide.
  void add(const float* row, int64_t entries, int64_t width, int64_t first = 0);
  /// Adds the texels of another row of the same width.
  void add(const TexelRow& other);
  /// The row of the next coarser level, each texel of which covers two of this one.
  TexelRow halved() const;
  /// The mean of texel i, where weights were added `entries` of; −inf where every logit is masked.
  float mean(int64_t i, int64_t entries) const;
};

/// The larger in size of two differences, either of which may be none (−inf).
float larger_in_size(float a, float b);

}  // namespace attnscope
