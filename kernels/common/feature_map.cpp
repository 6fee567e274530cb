#include "kernels/common/feature_map.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace attnscope {

int feature_exponent(ScoreFunction score, float largest) {
  // exp(x) ≥ 2⁻²⁰ is far enough from float32's end for products of two of them.
  constexpr float kSmall = -20 * std::numbers::ln2_v<float>;
  if (score != ScoreFunction::linear_elu1 || largest >= kSmall) return 0;
  return static_cast<int>(std::floor(static_cast<double>(largest) * std::numbers::log2e));
}

void apply_feature_map(ScoreFunction score, float* values, int64_t count, int exponent) {
  if (score == ScoreFunction::linear_relu) {
    for (int64_t i = 0; i < count; ++i) values[i] = std::max(values[i], 0.0f);
  } else if (score == ScoreFunction::linear_elu1 && exponent == 0) {
    for (int64_t i = 0; i < count; ++i) {
      values[i] = values[i] > 0 ? values[i] + 1.0f : std::exp(values[i]);
    }
  } else if (score == ScoreFunction::linear_elu1) {
    // Every value is far below 0.
    const double shift = exponent * std::numbers::ln2;
    for (int64_t i = 0; i < count; ++i) {
      values[i] = static_cast<float>(std::exp(static_cast<double>(values[i]) - shift));
    }
  }
}

}  // namespace attnscope
