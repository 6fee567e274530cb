#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/common/parser.h"
#include "cli/run/head_run_options.h"
#include "cli/run/stats_jobs.h"
#include "core/heads/head_arrays.h"
#include "core/reduce/head_metrics.h"

namespace attnscope {

/// The values of the options of `stats`.
struct StatsOptions : HeadRunOptions {
  std::string sort;
  std::vector<std::string> extras, thresholds;
  int64_t sample = 0;
  int64_t band = -1;
  bool exact = false;
  bool curve = false;
  std::optional<int64_t> top = {}, nearest = {};

  /// Only after check_stats_options(), which makes sure of it.
  StatsChoice choice() const;
};

void add_stats_options(CommandParser& command, StatsOptions& options);

/// These throw Error(usage) where an option cannot be meant.
void check_stats_options(const StatsOptions& options);
ClassThresholds parse_thresholds(const StatsOptions& options);
/// ".json", ".csv" or ".h5"; empty without -o.
std::string extension_of(const StatsOptions& options);

}  // namespace attnscope
