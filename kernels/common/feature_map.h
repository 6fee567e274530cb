#pragma once

#include <cstdint>

#include "core/problem/score.h"

namespace attnscope {

/// The power of two by which the features of numbers up to `largest` are to be divided, so that
/// float32 does not flush them to 0: elu(x) + 1 = exp(x) for x ≤ 0 is tiny where all x are far
/// below 0. A row's weights do not depend on it. 0 in all usual cases.
int feature_exponent(ScoreFunction score, float largest);

/// The feature map of linear scores (elu(x) + 1 or max(x, 0)), in place, divided by 2^exponent;
/// others are left alone.
void apply_feature_map(ScoreFunction score, float* values, int64_t count, int exponent);

}  // namespace attnscope
