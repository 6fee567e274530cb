#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/reduce/head_metrics.h"
#include "io/capture/capture.h"

namespace attnscope {

/// Values of one head's rows that were asked for, in the order of its rows; NaN where masked.
struct StatsRows {
  std::vector<double> entropy, max_weight, max_key, lse;
};

/// What is written of a head beside its numbers: names of stats_arrays().
using StatsExtras = std::vector<std::string>;

/// The record of a head; see io/results/stats_files.h. `rows` holds what the extras ask for.
nlohmann::ordered_json stats_record(const CallEntry& call, const HeadTask& task,
                                    const HeadMetrics& metrics, const HeadTotals& totals,
                                    const ReductionRequest& request, const StatsExtras& extras,
                                    const StatsRows& rows);

/// The records as a table for people, on standard output.
void print_stats_table(const std::vector<nlohmann::ordered_json>& records);

}  // namespace attnscope
