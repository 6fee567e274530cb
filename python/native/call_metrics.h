#pragma once

#include <cstdint>
#include <vector>

#include "io/metrics/run_table.h"
#include "python/native/call_numbers.h"

namespace attnscope {

/// The metrics to measure of every head of a running model.
struct MetricWords {
  bool with_stats = false;
  StatsOptions stats;
  std::vector<int64_t> blocks;  ///< sides of the blocks of pooled maps
  MaskWords masks;              ///< none: no masks
};

/// All heads of a call: a group a branch, of one run. Throws what stats, pooled maps and masks
/// throw.
std::vector<MetricGroup> measure_metrics(const CallHandle& call, const MetricWords& words,
                                         EngineRun& run);

}  // namespace attnscope
