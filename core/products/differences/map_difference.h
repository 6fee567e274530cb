#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/problem/score.h"

namespace attnscope {

/// How entry (i, j) of map A is told apart from that of map B: A − B, |A − B|, log₂(A / B).
enum class Difference : uint8_t { off, signed_difference, absolute, log_ratio };
/// "off", "signed", "abs", "logratio".
std::string_view difference_name(Difference how);
std::optional<Difference> parse_difference(std::string_view name);
std::vector<std::string> difference_names();
/// True where this quantity has such a difference: logits, which may be negative, have no
/// ratio.
constexpr bool difference_suits(Difference how, Quantity quantity) {
  return how != Difference::log_ratio || quantity == Quantity::weights;
}
/// True of differences that may be below 0.
constexpr bool is_signed(Difference how) {
  return how == Difference::signed_difference || how == Difference::log_ratio;
}

/// The differences of entries, one by one; `out` may be `a`. −inf where there is none: a logit of
/// either side is masked, or (of ratios) a weight of either side is 0. NaN where either is NaN.
/// `how` is not off.
void take_difference(Difference how, std::span<const float> a, std::span<const float> b,
                     std::span<float> out);

/// The differences between two rows of weights. Sums are taken in double.
struct RowDifference {
  double sum_abs = 0;   ///< Σ_j |a_j − b_j|
  double max_abs = 0;   ///< the largest of them, at key `max_key`
  int64_t max_key = 0;  ///< the first where there are several
  /// Jensen–Shannon divergence in bits, 0 … 1: ½·KL(a‖m) + ½·KL(b‖m), m = (a + b)/2. NaN where a
  /// row is all 0 (masked), or the rows are no distributions.
  double divergence = 0;
  /// Σ_j a_j·b_j over the root of Σ_j a_j² · Σ_j b_j²; NaN where a row is all 0.
  double cosine = 0;
  /// Entropy of a − entropy of b, in nats; NaN where there is no divergence.
  double entropy = 0;
  double lse = 0;       ///< LSE of A − LSE of B; NaN where either is not finite or does not exist
  int64_t entries = 0;  ///< that were compared: all, but for compare_held_rows()
};

/// All but `lse`. Rows that add up to 1 (or to 0: masked) are distributions. NaN entries make every
/// number NaN.
RowDifference compare_rows(std::span<const float> a, std::span<const float> b,
                           bool distributions = true);

/// RowDifference::divergence of two distributions alone, for little more than half the work.
double row_divergence(std::span<const float> a, std::span<const float> b);

/// As compare_rows() of rows of which entries may not be there: NaN, or −inf of masked logits. An
/// entry that either lacks is not compared; a row that lacks one has no divergence, cosine and
/// entropy. `lse` is NaN.
RowDifference compare_held_rows(std::span<const float> a, std::span<const float> b,
                                bool distributions);

}  // namespace attnscope
