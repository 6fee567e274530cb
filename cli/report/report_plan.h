#pragma once

#include <cstdint>
#include <vector>

#include "cli/report/report_options.h"
#include "cli/run/run_plan.h"
#include "cli/run/stream_run.h"
#include "io/capture/capture.h"

namespace attnscope {

/// Heads that stand out at most: three of each of four rules.
inline constexpr int64_t kMostLooks = 12;

/// The entries of maps that passes compute, all that no mask is asked about, and the FLOP of their
/// products. A value.
struct PassCost {
  double entries = 0;
  double flops = 0;

  /// Adds so many heads' rows with all keys.
  void add(const AttentionProblem& problem, double heads, double rows);
  void add(const PassCost& other);
};

/// Of numbers, small maps, the comparison of heads and the larger maps: what every report computes.
PassCost cost_of_heads(const std::vector<SelectedCall>& calls, int64_t sample);
/// Of words, sparse masks and figures of at most `figure_bytes`: at most what a report of one
/// capture computes beside.
PassCost cost_of_sections(const std::vector<SelectedCall>& calls, int64_t sample,
                          int64_t figure_bytes);

/// What a report of these heads would take, of passes that cost `cost` together. Times a few rows.
RunPlan plan_of_passes(StreamRun& run, const RunOptions& options,
                       const std::vector<SelectedCall>& calls, int64_t sample,
                       const PassCost& cost);

/// A page of so many bytes at most as the plan's file.
void set_page_bytes(RunPlan& plan, int64_t bytes, bool at_most);

}  // namespace attnscope
