#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/heads/class_table.h"
#include "io/metrics/number_table.h"
#include "io/metrics/run_spread.h"

namespace attnscope {

/// A head over the runs of a table.
struct HeadRuns {
  HeadName name;
  int64_t runs = 0;        ///< that have the head
  std::string head_class;  ///< the most common one, of equal ones the first by name; empty: unknown
  double class_share = 0;  ///< of the runs that have a class; NaN where none has
};

/// One number of a head: in A, in B, and A − B.
struct MetricChange {
  RunSpread a, b, change;

  /// True where 0 lies outside of the interval of A − B.
  bool is_clear() const { return change.mean > change.interval || -change.mean > change.interval; }
};

/// A head of one table, or with another.
struct HeadChange {
  HeadRuns a, b;
  std::vector<MetricChange> metrics;  ///< in the order of TableComparison::metrics
};

/// Numbers of heads over the runs of a table, or heads against each other.
struct TableComparison {
  bool has_b = false;
  /// Both sides are of one table: `change` is the spread of the differences of each run, else
  /// spread_of_difference().
  bool is_paired = false;
  std::vector<std::string> metrics;   ///< of A, and of B where there is one
  std::vector<std::string> left_out;  ///< that only one of the tables has
  std::vector<HeadChange> heads;
};

/// The names of a table's heads, each once, in the order of their first lines.
std::vector<HeadName> heads_of_table(const NumberTable& table);

/// Heads of one table over its runs.
TableComparison summarise_table(const NumberTable& table, std::span<const HeadName> heads);
/// Heads of A, each with one of B, which may be the same table.
TableComparison compare_tables(const NumberTable& a, const NumberTable& b,
                               std::span<const std::pair<HeadName, HeadName>> heads);

/// Of the heads of summarise_table() that have a class.
ClassTable class_table(const TableComparison& found);

}  // namespace attnscope
