#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "core/mask/mask.h"

namespace attnscope {

// Biases that the places of query and key make, told by a few numbers a head. Their memory does not
// grow with queries times keys.

/// Numbers of a call's heads.
struct HeadNumbers {
  std::array<int64_t, 2> shape{1, 1};  ///< batch items and query heads, each all or 1 for all
  std::vector<float> each;             ///< of the shape, those of a head contiguous
  int64_t count = 1;                   ///< numbers a head
  /// In place of `each`: those of one head, [batch item or 0, head or 0], read at their first use.
  std::function<std::vector<float>(int64_t, int64_t)> read = {};
};

/// Linear biases (ALiBi, Press et al. 2021), a slope a head: −slope·|query + shift − key| is added
/// to the logits, with shift = keys − queries, so that the last query and the last key are at one
/// place (as flash-attention has it). Throws Error(value) naming the first that is not finite.
Mask alibi_mask(HeadNumbers slopes, int64_t shift);

/// Relative position biases (Shaw et al. 2018; T5), queries + keys − 1 a head: number query − key +
/// keys − 1 is added to the logits, and masks from kMaskedBias down. Throws Error(value) naming the
/// first NaN or +inf; of numbers that are read later, the mask's members do.
Mask relative_bias_mask(HeadNumbers biases, int64_t keys);

/// Relative position biases on a grid (Swin): of cells (t, y, x) and (t', y', x') of T×H×W the
/// number of a head at [t − t' + T − 1, y − y' + H − 1, x − x' + W − 1], row-major, of
/// (2T − 1)·(2H − 1)·(2W − 1). Cells are row-major from token `first` on, of queries as of keys;
/// entries of other tokens have no bias. Throws as relative_bias_mask().
Mask grid_bias_mask(HeadNumbers biases, std::array<int64_t, 3> grid, int64_t first);

}  // namespace attnscope
