#include "tests/core/mask/mask_rectangles.h"

#include <random>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/helpers.h"

namespace attnscope::test {
namespace {

IndexRange pick_range(std::mt19937_64& random, int64_t extent) {
  // Mostly short ranges: these are the ones that a mask leaves empty or full.
  const int64_t longest = pick(random, 0, 2) == 0 ? extent : std::min<int64_t>(extent, 12);
  const int64_t size = pick(random, 1, longest);
  const int64_t begin = pick(random, 0, extent - size);
  return {begin, begin + size};
}

/// The class of a rectangle by the mask's definition, entry by entry.
TileClass true_class(const MaskDefinition& bias, int64_t b, int64_t h, IndexRange queries,
                     IndexRange keys) {
  bool any_kept = false, any_other = false;
  for (int64_t i = queries.begin; i < queries.end; ++i) {
    for (int64_t j = keys.begin; j < keys.end; ++j) {
      const float value = bias(b, h, i, j);
      any_kept |= value != -std::numeric_limits<float>::infinity();
      any_other |= value != 0;
    }
  }
  return !any_kept ? TileClass::empty : !any_other ? TileClass::full : TileClass::mixed;
}

}  // namespace

bool fills_as_defined(const Mask& mask, const MaskDefinition& bias, int64_t b, int64_t h,
                      const std::vector<int64_t>& queries, IndexRange keys) {
  constexpr float kGuard = 12345.0f;
  const int64_t stride = keys.size() + 3;
  std::vector<float> out(queries.size() * static_cast<size_t>(stride), kGuard);
  mask.fill_bias(b, h, queries, keys, out.data(), stride);
  for (size_t r = 0; r < queries.size(); ++r) {
    for (int64_t c = 0; c < stride; ++c) {
      const float expected = c < keys.size() ? bias(b, h, queries[r], keys.begin + c) : kGuard;
      if (out[r * static_cast<size_t>(stride) + static_cast<size_t>(c)] != expected) return false;
    }
  }
  return true;
}

void check_mask(const Mask& mask, const MaskDefinition& bias, const MaskShape& shape, bool exact,
                int rounds) {
  INFO(mask.describe());
  mask.check_shape(shape.batch, shape.heads, shape.queries, shape.keys);
  std::mt19937_64 random(7);
  int wrong_class = 0, wrong_bias = 0, careful = 0;
  for (int round = 0; round < rounds; ++round) {
    const int64_t b = pick(random, 0, shape.batch - 1), h = pick(random, 0, shape.heads - 1);
    const IndexRange queries = pick_range(random, shape.queries);
    const IndexRange keys = pick_range(random, shape.keys);
    const TileClass truth = true_class(bias, b, h, queries, keys);
    const TileClass said = mask.classify(b, h, queries, keys);
    if (said != truth) ++(said == TileClass::mixed ? careful : wrong_class);
    if (round % 10 != 0) continue;
    // Rows with gaps.
    std::vector<int64_t> rows;
    for (int64_t i = queries.begin; i < queries.end; i += pick(random, 1, 3)) rows.push_back(i);
    wrong_bias += fills_as_defined(mask, bias, b, h, rows, keys) ? 0 : 1;
  }
  CHECK(wrong_class == 0);
  CHECK(wrong_bias == 0);
  if (exact) CHECK(careful == 0);
}

}  // namespace attnscope::test
