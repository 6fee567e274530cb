#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cli/stats/stats_options.h"
#include "core/heads/head_record.h"
#include "core/reduce/reduction_stream.h"
#include "io/capture/capture.h"
#include "io/capture/selection_share.h"

namespace attnscope {

/// The selection as jobs, and what they borrow.
struct StatsJobs {
  std::vector<SelectedCall> calls;
  std::vector<std::vector<int64_t>> rows, share_rows;  ///< of each call
  std::vector<ReductionJob> jobs;
  std::vector<std::span<const std::string>> tokens;  ///< [job], of the text
};

/// Borrows the capture.
StatsJobs make_stats_jobs(const StatsOptions& options, const Capture& capture);
/// Borrows the calls, which were selected already.
StatsJobs make_stats_jobs(const StatsOptions& options, std::vector<SelectedCall> calls);
/// Leaves the jobs of a share of the calls.
void keep_share(StatsJobs& jobs, const SelectionShare& share);
/// Takes the jobs of these places, which ascend, out.
void drop_jobs(StatsJobs& jobs, std::span<const int64_t> places);

}  // namespace attnscope
