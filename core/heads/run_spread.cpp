#include "core/heads/run_spread.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace attnscope {
namespace {

constexpr double kNoSpread = std::numeric_limits<double>::quiet_NaN();

/// The share of Student's distribution with |T| ≤ t: its finite series for whole degrees of freedom
/// in θ = atan(t/√freedom).
double share_within(double t, int64_t freedom) {
  const double theta = std::atan(t / std::sqrt(static_cast<double>(freedom)));
  const double cosine = std::cos(theta), square = cosine * cosine;
  const bool odd = freedom % 2 == 1;
  double sum = 0, term = odd ? cosine : 1;
  for (int64_t k = odd ? 3 : 2; k <= freedom; k += 2) {
    sum += term;
    const auto n = static_cast<double>(k);
    term *= square * (n - 1) / n;
  }
  if (odd) return 2 / std::numbers::pi * (theta + std::sin(theta) * sum);
  return std::sin(theta) * sum;
}

}  // namespace

double student_t95(int64_t freedom) {
  constexpr double kShare = 0.95;
  // Most numbers of a table are of as many runs.
  thread_local int64_t last_freedom = 0;
  thread_local double last = 0;
  // Of so many the distribution is the normal one but for 10⁻⁶, and the series long.
  freedom = std::min<int64_t>(freedom, 1 << 20);
  if (freedom == last_freedom) return last;
  double low = 0, high = 16;  // 12.7 of one degree, less of more
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (share_within(middle, freedom) < kShare ? low : high) = middle;
  }
  last_freedom = freedom;
  last = (low + high) / 2;
  return last;
}

RunSpread spread_of(std::span<const double> values) {
  RunSpread spread{0, kNoSpread, kNoSpread, kNoSpread};
  double sum = 0;
  for (const double value : values) {
    if (std::isnan(value)) continue;
    sum += value;
    ++spread.runs;
  }
  if (spread.runs == 0) return spread;
  const auto runs = static_cast<double>(spread.runs);
  spread.mean = sum / runs;
  if (spread.runs < 2) return spread;
  double squares = 0;
  for (const double value : values) {
    if (!std::isnan(value)) squares += (value - spread.mean) * (value - spread.mean);
  }
  spread.deviation = std::sqrt(squares / (runs - 1));
  spread.interval = student_t95(spread.runs - 1) * spread.deviation / std::sqrt(runs);
  return spread;
}

RunSpread spread_of_difference(const RunSpread& a, const RunSpread& b) {
  RunSpread spread{std::min(a.runs, b.runs), a.mean - b.mean, kNoSpread, kNoSpread};
  if (spread.runs < 2) return spread;
  const auto share = [](const RunSpread& side) {
    return side.deviation * side.deviation / static_cast<double>(side.runs);
  };
  const double of_a = share(a), of_b = share(b), both = of_a + of_b;
  if (both == 0) {
    spread.interval = 0;
    return spread;
  }
  const double freedom = both * both /
                         (of_a * of_a / static_cast<double>(a.runs - 1) +
                          of_b * of_b / static_cast<double>(b.runs - 1));
  // At least the smaller number of runs less one, but for rounding.
  const auto whole = static_cast<int64_t>(std::floor(freedom * (1 + 1e-12)));
  spread.interval = student_t95(std::max<int64_t>(1, whole)) * std::sqrt(both);
  return spread;
}

}  // namespace attnscope
