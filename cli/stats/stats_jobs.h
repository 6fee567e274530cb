#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "cli/stats/stats_options.h"
#include "core/reduce/reduction_stream.h"
#include "io/capture/capture.h"

namespace attnscope {

/// The selection as jobs, and what they borrow.
struct StatsJobs {
  std::vector<SelectedCall> calls;
  std::vector<std::vector<int64_t>> rows, share_rows;  ///< of each call
  std::vector<ReductionJob> jobs;
  std::vector<const CallEntry*> call_of_job;
};

/// Borrows the capture.
StatsJobs make_stats_jobs(const StatsOptions& options, const Capture& capture);
/// Takes the jobs out whose records are there.
void drop_known(StatsJobs& jobs, const std::vector<nlohmann::ordered_json>& kept);
/// By step, layer, batch item, kind and head; or by the number `by`, the largest first.
void sort_records(std::vector<nlohmann::ordered_json>& records, const std::string& by);

}  // namespace attnscope
