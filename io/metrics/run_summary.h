#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "io/metrics/run_table.h"

namespace attnscope {

/// A number over runs. Spread and interval are NaN of fewer than two.
struct NumberSpread {
  int64_t runs = 0;      ///< where it is defined
  double mean = 0;       ///< NaN where it is nowhere defined
  double deviation = 0;  ///< with n − 1
  double half95 = 0;     ///< half of the 95 % interval of the mean, by Student's t
};
/// `values` may hold NaN, which are left out.
NumberSpread spread_of(const std::vector<double>& values);

/// One head over the runs of a table.
struct HeadOverRuns {
  HeadName name;
  std::string head_class;  ///< the most common; of several, the first by the alphabet
  double class_share = 0;  ///< of the runs that have the head
  int64_t runs = 0;        ///< that have the head
  /// [number][run] of the numbers that were asked for; NaN where a run has none.
  std::vector<std::vector<double>> values;
};
/// The heads of a table of stats in the order of stats, with these numbers (metric_names()).
/// Throws Error(usage), naming `where`, where stats were not measured.
std::vector<HeadOverRuns> heads_over_runs(const RunTable& table,
                                          const std::vector<std::string>& numbers,
                                          const std::string& where);

/// A head whose class is another at a step than at the one before it in the table.
struct ClassChange {
  HeadName name;  ///< at the later step
  int64_t before_step = 0;
  std::string before, after;
};
std::vector<ClassChange> class_changes(const std::vector<HeadOverRuns>& heads);

/// How much larger a number of A is. Of the same runs (`paired`), the spread of their own
/// differences; else Welch's interval of the difference of the means.
struct NumberDifference {
  NumberSpread a, b;
  double difference = 0;  ///< of the means; NaN where one has none
  double half95 = 0;      ///< NaN where either has fewer than two runs
  bool is_clear() const { return difference > half95 || -difference > half95; }
};
NumberDifference difference_of(const std::vector<double>& a, const std::vector<double>& b,
                               bool paired);

}  // namespace attnscope
