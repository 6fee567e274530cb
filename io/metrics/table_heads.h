#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/heads/head_record.h"
#include "io/metrics/number_table.h"

namespace attnscope {

/// Heads of a table, each over all runs that have it: the mean of its numbers, the most common
/// class, of equal ones the first by name.
struct TableHeads {
  std::vector<std::string> classes;         ///< [heads]; empty: not known
  std::vector<std::vector<double>> values;  ///< [metrics of the table, heads]; NaN: not defined
  /// [heads], of the numbers that stats have and tables are read for: no counts, arrays and keys.
  std::vector<HeadRecord> records;
};
/// `names` as of heads_of_table().
TableHeads mean_heads(const NumberTable& table, std::span<const HeadName> names);

}  // namespace attnscope
