#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "core/base/index_range.h"
#include "core/mask/mask.h"

namespace attnscope::test {

/// Extents of a problem that masks are tried on.
struct MaskShape {
  int64_t batch = 2, heads = 3, queries = 90, keys = 70;
};

/// The bias of an entry: 0, −inf or finite.
using MaskDefinition = std::function<float(int64_t b, int64_t h, int64_t i, int64_t j)>;

inline float masked_unless(bool kept) {
  return kept ? 0.0f : -std::numeric_limits<float>::infinity();
}

/// True where fill_bias writes the definition into a rectangle, and nothing around it.
bool fills_as_defined(const Mask& mask, const MaskDefinition& bias, int64_t b, int64_t h,
                      const std::vector<int64_t>& queries, IndexRange keys);

/// Random rectangles: classify is what the definition says, or (not where `exact`) mixed where it
/// may be careful, and fill_bias writes the definition.
void check_mask(const Mask& mask, const MaskDefinition& bias, const MaskShape& shape, bool exact,
                int rounds = 2000);

}  // namespace attnscope::test
