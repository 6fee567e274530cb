#pragma once

#include <filesystem>
#include <functional>
#include <string_view>
#include <vector>

#include "core/base/memory_budget.h"
#include "io/files/output_file.h"

namespace attnscope {

/// True of a file that holds metrics of runs: a table, or the journal of one.
bool holds_metrics(const std::filesystem::path& path);

/// Result of joining tables.
struct MetricMerge {
  int64_t runs = 0, groups = 0, bytes_written = 0;
  std::vector<std::string> warnings;
};

/// How tables are joined.
struct MetricJoin {
  bool mixed = false;    ///< of several backends as well
  bool dry_run = false;  ///< check them, write nothing
};

/// Joins tables, and journals of runs that were cut off, to one, .h5 or .csv by the name's end: all
/// runs of all of them. Heads of one run that several processes measured are put together. What is
/// read counts in `budget`. Throws Error(file) that names what is there twice, the ranks whose
/// files are missing, and what was measured with other options, of which `mixed` allows other
/// backends; Error(usage) for another name's end.
MetricMerge merge_metrics(const std::vector<std::filesystem::path>& parts,
                          const std::filesystem::path& out, const MetricJoin& how,
                          OutputFileOptions options, MemoryBudget& budget);
/// Gives the .csv that merge_metrics() writes to `put`, in pieces.
MetricMerge join_metrics(const std::vector<std::filesystem::path>& parts, const MetricJoin& how,
                         MemoryBudget& budget, const std::function<void(std::string_view)>& put);

}  // namespace attnscope
