#include "kernels/cuda/host/tensors/held_rows.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace attnscope::cuda {

float most_held_length(const AttentionProblem& problem, int64_t head, float longest_key) {
  constexpr float kNone = -1;
  // The squares of very small channels, up to 2^20 of them, lose less than this.
  constexpr double kLost = 0x1p-120;
  // Beyond these, a masked entry's exponent may be no longer far below −kHeldExponent, or a product
  // may be infinite.
  constexpr double kLeastFactor = 0x1p-60;
  constexpr double kMostFactor = 0x1p60;
  if (problem.score() != ScoreFunction::softmax || problem.mask().has_finite_bias()) return kNone;
  const double factor = problem.scale(head) * std::numbers::log2e;
  if (!(factor >= kLeastFactor && factor <= kMostFactor) || !std::isfinite(longest_key)) {
    return kNone;
  }
  const double product = static_cast<double>(kHeldExponent) / factor;
  const double most = product * product / (static_cast<double>(longest_key) + kLost);
  // Lengths this short may have lost what they are made of.
  if (most < 0x1p-100) return kNone;
  return static_cast<float>(std::min(most, 0x1p120));
}

bool is_held_sum(double sum, int64_t num_keys) {
  // Lengths and products are rounded, by less than 2^-12 of kHeldExponent.
  const double most = std::exp2(static_cast<double>(kHeldExponent) + 1);
  return sum >= 1 / most && sum <= most * static_cast<double>(num_keys);
}

}  // namespace attnscope::cuda
