#include "core/products/differences/map_difference.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>

#include "core/mask/masked_bias.h"

namespace attnscope {
namespace {

constexpr std::array<std::string_view, 4> kDifferenceNames{"off", "signed", "abs", "logratio"};

/// Lanes that a compiler may hold in vectors.
constexpr size_t kSumLanes = 8;

/// log₂ x, relative error below 10⁻¹², of a normal x; some finite number of 0. Without branches or
/// calls, so that many are computed at once.
inline double fast_log2(double x) {
  constexpr uint64_t kOne = 0x3ff0000000000000, kRootHalf = 0x3fe6a09e667f3bcd;
  constexpr double kTwo52 = 0x1p52, kPerNat = 1.4426950408889634;
  const auto bits = std::bit_cast<uint64_t>(x);
  // x = m · 2^(k − 1023) with m in [√½, √2).
  const uint64_t k = (bits + (kOne - kRootHalf)) >> 52;
  const auto m = std::bit_cast<double>(bits - (k << 52) + kOne);
  const double exponent =
      std::bit_cast<double>(k | std::bit_cast<uint64_t>(kTwo52)) - (kTwo52 + 1023);
  // ln m = 2·artanh z, |z| ≤ 0.172.
  const double z = (m - 1) / (m + 1);
  const double s = z * z;
  double series = 1.0 / 15;
  for (const double part : {1.0 / 13, 1.0 / 11, 1.0 / 9, 1.0 / 7, 1.0 / 5, 1.0 / 3, 1.0}) {
    series = series * s + part;
  }
  return exponent + 2 * kPerNat * z * series;
}

/// The terms that a pair of weights adds to the sums over its rows.
struct PairParts {
  double divergence, entropy;  ///< in bits; the entropy is a·log₂ a − b·log₂ b
};

/// With s = a + b and r = |a − b| / s the weights are s/2·(1 ± r), so that the divergence is
/// s/4·((1 + r)·log₂(1 + r) + (1 − r)·log₂(1 − r)), and what lies between the entropies, where a is
/// the larger, |a − b|·log₂(s/2) + s/2·((1 + r)·log₂(1 + r) − (1 − r)·log₂(1 − r)): nothing is left
/// of large numbers where a and b are next to the same. What rounding adds is some 10⁻¹⁶ of s,
/// where Σ s is 2.
inline PairParts pair_parts(double a, double b) {
  const double s = a + b;
  const double difference = std::abs(a - b);
  const double r = difference / (s + std::numeric_limits<double>::min());
  const double more = (1 + r) * fast_log2(1 + r), less = (1 - r) * fast_log2(1 - r);
  const double entropy = difference * fast_log2(s / 2) + s / 2 * (more - less);
  return {s / 4 * (more + less), std::copysign(1.0, a - b) * entropy};
}

struct RowPairSums {
  double difference = 0, divergence = 0, entropy = 0, a = 0, b = 0;
};

/// The sums that sum_pair() takes beside those of differences; each costs logarithms an entry.
enum class PairSums : uint8_t { none, divergence, all };

template <PairSums kSums>
RowPairSums sum_pair(std::span<const float> a, std::span<const float> b) {
  std::array<double, kSumLanes> difference{}, divergence{}, entropy{}, of_a{}, of_b{};
  const auto add = [&](size_t lane, double x, double y) {
    difference[lane] += std::abs(x - y);
    of_a[lane] += x;
    of_b[lane] += y;
    if constexpr (kSums == PairSums::divergence) {
      // The other part is not computed where nobody asks for it.
      divergence[lane] += pair_parts(x, y).divergence;
    } else if constexpr (kSums == PairSums::all) {
      const PairParts parts = pair_parts(x, y);
      divergence[lane] += parts.divergence;
      entropy[lane] += parts.entropy;
    }
  };
  const size_t whole = a.size() / kSumLanes * kSumLanes;
  for (size_t i = 0; i < whole; i += kSumLanes) {
    for (size_t lane = 0; lane < kSumLanes; ++lane) add(lane, a[i + lane], b[i + lane]);
  }
  for (size_t i = whole; i < a.size(); ++i) add(0, a[i], b[i]);
  RowPairSums sums;
  for (size_t lane = 0; lane < kSumLanes; ++lane) {
    sums.difference += difference[lane];
    sums.divergence += divergence[lane];
    sums.entropy += entropy[lane];
    sums.a += of_a[lane];
    sums.b += of_b[lane];
  }
  return sums;
}

/// NaN where a row is all 0.
double row_cosine(std::span<const float> a, std::span<const float> b) {
  std::array<double, kSumLanes> products{}, of_a{}, of_b{};
  const auto add = [&](size_t lane, double x, double y) {
    products[lane] += x * y;
    of_a[lane] += x * x;
    of_b[lane] += y * y;
  };
  const size_t whole = a.size() / kSumLanes * kSumLanes;
  for (size_t i = 0; i < whole; i += kSumLanes) {
    for (size_t lane = 0; lane < kSumLanes; ++lane) add(lane, a[i + lane], b[i + lane]);
  }
  for (size_t i = whole; i < a.size(); ++i) add(0, a[i], b[i]);
  double product = 0, size_a = 0, size_b = 0;
  for (size_t lane = 0; lane < kSumLanes; ++lane) {
    product += products[lane];
    size_a += of_a[lane];
    size_b += of_b[lane];
  }
  // Rounding may leave a hair beyond the ends. 0 / 0 is no number.
  return std::clamp(product / std::sqrt(size_a * size_b), -1.0, 1.0);
}

constexpr double kNoDifference = std::numeric_limits<double>::quiet_NaN();

/// Rounding may leave a hair beyond the ends.
double divergence_of(const RowPairSums& sums) {
  const bool both = sums.a > 0 && sums.b > 0;
  return both ? std::clamp(sums.divergence, 0.0, 1.0) : kNoDifference;
}

}  // namespace

std::string_view difference_name(Difference how) {
  return kDifferenceNames[static_cast<size_t>(how)];
}

std::optional<Difference> parse_difference(std::string_view name) {
  for (size_t i = 0; i < kDifferenceNames.size(); ++i) {
    if (kDifferenceNames[i] == name) return static_cast<Difference>(i);
  }
  return std::nullopt;
}

std::vector<std::string> difference_names() {
  return {kDifferenceNames.begin(), kDifferenceNames.end()};
}

void take_difference(Difference how, std::span<const float> a, std::span<const float> b,
                     std::span<float> out) {
  const size_t count = out.size();
  if (how == Difference::log_ratio) {
    for (size_t i = 0; i < count; ++i) {
      const bool none = a[i] == 0 || b[i] == 0;
      out[i] = none ? kMasked : std::log2(a[i]) - std::log2(b[i]);
    }
    return;
  }
  const bool absolute = how == Difference::absolute;
  for (size_t i = 0; i < count; ++i) {
    const float difference = a[i] - b[i];
    const bool none = a[i] == kMasked || b[i] == kMasked;
    out[i] = none ? kMasked : absolute ? std::abs(difference) : difference;
  }
}

RowDifference compare_rows(std::span<const float> a, std::span<const float> b, bool distributions) {
  constexpr double kNone = kNoDifference;
  const RowPairSums sums =
      distributions ? sum_pair<PairSums::all>(a, b) : sum_pair<PairSums::none>(a, b);
  RowDifference row;
  row.sum_abs = sums.difference;
  if (std::isnan(sums.difference)) return {kNone, kNone, 0, kNone, kNone, kNone, kNone, 0};
  row.entries = static_cast<int64_t>(a.size());
  row.divergence = distributions ? divergence_of(sums) : kNone;
  row.entropy = std::isnan(row.divergence) ? kNone : -sums.entropy * std::numbers::ln2;
  row.cosine = row_cosine(a, b);
  row.lse = kNone;
  float largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const float difference = std::abs(a[i] - b[i]);
    if (difference <= largest) continue;
    largest = difference;
    row.max_key = static_cast<int64_t>(i);
  }
  row.max_abs = largest;
  return row;
}

double row_divergence(std::span<const float> a, std::span<const float> b) {
  const RowPairSums sums = sum_pair<PairSums::divergence>(a, b);
  return std::isnan(sums.difference) ? kNoDifference : divergence_of(sums);
}

RowDifference compare_held_rows(std::span<const float> a, std::span<const float> b,
                                bool distributions) {
  const auto is_held = [&](size_t i) { return std::isfinite(a[i]) && std::isfinite(b[i]); };
  size_t held = 0;
  for (size_t i = 0; i < a.size(); ++i) held += is_held(i) ? 1 : 0;
  if (held == a.size()) return compare_rows(a, b, distributions);
  constexpr double kNone = kNoDifference;
  RowDifference row{0, 0, 0, kNone, kNone, kNone, kNone, static_cast<int64_t>(held)};
  for (size_t i = 0; i < a.size(); ++i) {
    if (!is_held(i)) continue;
    const double difference = std::abs(static_cast<double>(a[i]) - b[i]);
    row.sum_abs += difference;
    if (difference <= row.max_abs) continue;
    row.max_abs = difference;
    row.max_key = static_cast<int64_t>(i);
  }
  return row;
}

}  // namespace attnscope
