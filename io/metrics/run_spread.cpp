#include "io/metrics/run_spread.h"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <limits>

namespace attnscope {
namespace {

constexpr double kNoSpread = std::numeric_limits<double>::quiet_NaN();

}  // namespace

double student_t95(int64_t freedom) {
  // Most numbers of a table are of as many runs.
  thread_local int64_t last_freedom = 0;
  thread_local double last = 0;
  if (freedom != last_freedom) {
    const boost::math::students_t distribution(static_cast<double>(freedom));
    last = boost::math::quantile(distribution, 0.975);
    last_freedom = freedom;
  }
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
