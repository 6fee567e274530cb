#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cli/run/stream_run.h"
#include "core/heads/head_arrays.h"
#include "core/heads/head_record_sink.h"
#include "core/reduce/head_metrics.h"
#include "core/reduce/reduction_stream.h"
#include "io/capture/capture.h"
#include "io/capture/selection_share.h"
#include "io/files/json_types.h"

namespace attnscope {

/// Rows on which keys are counted unless StatsChoice::exact asks for all of them.
inline constexpr int64_t kShareRows = 256;

/// Which numbers of heads are found, and how.
struct StatsChoice {
  std::vector<HeadArray> arrays;  ///< no array twice
  int64_t sample = 0;             ///< rows of each head; 0: all
  int64_t band = -1;              ///< reach of temporal_score; −1: by the grid
  bool exact = false;             ///< keys are counted on all rows
  ClassThresholds thresholds;
};

/// All of it but the arrays; equal choices have equal JSON.
OrderedJson choice_json(const StatsChoice& choice);

/// The selection as jobs, and what they borrow.
struct StatsJobs {
  std::vector<SelectedCall> calls;
  std::vector<std::vector<int64_t>> rows, share_rows;  ///< of each call
  std::vector<ReductionJob> jobs;
  std::vector<std::span<const std::string>> tokens;  ///< [job], of the text
};

/// Borrows the calls' capture.
StatsJobs make_stats_jobs(const StatsChoice& choice, std::vector<SelectedCall> calls);
/// Leaves the jobs of a share of the calls.
void keep_share(StatsJobs& jobs, const SelectionShare& share);
/// Takes the jobs of these places, which ascend, out.
void drop_jobs(StatsJobs& jobs, std::span<const int64_t> places);

ReductionPlan plan_stats(const StatsChoice& choice, const StatsJobs& jobs,
                         const TileBackend& backend, const MemoryBudget& budget, int threads);
/// Streams the jobs; `take` gets each head's record when it is done, in no particular order. False:
/// it was stopped.
bool measure_heads(const StreamJob& job, const StatsChoice& choice, const StatsJobs& jobs,
                   const ReductionPlan& plan, const HeadRecordSink::Take& take);

}  // namespace attnscope
