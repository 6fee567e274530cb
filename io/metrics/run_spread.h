#pragma once

#include <cstdint>
#include <span>

namespace attnscope {

/// Mean and spread of one number over several runs: x̄ ± t·s/√n.
struct RunSpread {
  int64_t runs = 0;  ///< n: runs that have the number
  double mean = 0;   ///< x̄; NaN without runs
  /// s, the standard deviation of a sample: the root of Σ(x − x̄)² / (n − 1); NaN of fewer than two
  /// runs.
  double deviation = 0;
  /// Half the width of the 95 % confidence interval of the mean: t·s/√n with Student's t of n − 1
  /// degrees of freedom; NaN of fewer than two runs. It takes runs for independent, and their
  /// numbers for normally distributed.
  double interval = 0;
};

/// Of the values of runs, of which NaN is none. Sums are in the order of the values.
RunSpread spread_of(std::span<const double> values);

/// The spread of the difference A − B between the means of two independent groups of runs: Welch's
/// interval t·√(s_a²/n_a + s_b²/n_b), whose degrees of freedom are rounded down. `runs` is the
/// smaller number of runs, `deviation` NaN.
RunSpread spread_of_difference(const RunSpread& a, const RunSpread& b);

/// The t that 95 % of Student's distribution lie below in size; `freedom` is at least 1.
double student_t95(int64_t freedom);

}  // namespace attnscope
