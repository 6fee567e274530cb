#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/report/cell_map.h"
#include "cli/run/stats_jobs.h"
#include "cli/run/stream_run.h"
#include "core/heads/head_record.h"
#include "io/capture/capture.h"

namespace attnscope {

/// The cells of a small map on a side, at most.
inline constexpr int64_t kSmallMapCells = 64;

/// A head of a capture that was measured.
struct MeasuredHead {
  HeadRecord record;  ///< with the array frame_frame alone
  const CallEntry* call = nullptr;
  CellMap map;  ///< of at most kSmallMapCells cells on a side
  /// The query whose row tells most: of those that were computed the video query (where there is no
  /// video, the query) whose row has the smallest entropy, of scores that are not normalised the
  /// largest weight; the first of equal ones. Nothing where all are masked.
  std::optional<int64_t> best_query;
  /// Mean divergence in bits from the other heads of its call that were measured; nothing where it
  /// is alone.
  std::optional<double> own_way;

  HeadTask task() const {
    const AttentionProblem& problem = *call->problem;
    return {&problem, record.name.batch,      record.name.head, {0, problem.num_queries()},
            {},       {0, problem.num_keys()}};
  }
};

struct MeasuredHeads {
  std::vector<MeasuredHead> heads;    ///< in the order of HeadOrder
  std::vector<HeadName> not_reached;  ///< time was over
  std::vector<std::string> problems;  ///< of heads that cannot be measured, a line each
};

/// Where heads of a report are measured. Borrowed.
struct MeasureMeans {
  StreamRun& run;
  const Console& console;
  std::stop_token stop;
  std::function<bool()> time_left;
};

/// Products of all rows of a report's heads that are soon computed: some seconds on a few cores.
inline constexpr double kSoonFlops = 4e11;
/// Rows of each head that its numbers and maps are from: `asked` where it is not 0, else all where
/// their products are soon computed, else 256. 0: all.
int64_t rows_of_report(int64_t asked, const std::vector<SelectedCall>& calls);

/// What a page lacks where find_own_ways() came to no end.
inline constexpr const char* kOwnWaysLate =
    "--budget-time was over before all heads were compared with the others of their call";

/// What heads take until the page is written, and the rows of those that are being measured.
struct MeasuredMemory {
  MemoryReservation heads, rows;
};
/// Throws Error(resource). `sample` as of rows_of_report().
MeasuredMemory reserve_heads(MemoryBudget& budget, const std::vector<SelectedCall>& calls,
                             int64_t sample);
/// The arrays that heads are measured with.
std::vector<HeadArray> measured_arrays();

/// Within the caller's reserve_heads(): the numbers of each head of the calls as `stats` finds them
/// by `choice`, with a map of each. A head that cannot be read or computed with is a problem, not
/// an error. Throws Error(interrupted), Error(resource).
MeasuredHeads measure_for_report(const MeasureMeans& means, StatsChoice choice,
                                 const std::vector<SelectedCall>& calls);

/// Sets own_way of the heads. False where time was over before all have it.
bool find_own_ways(const MeasureMeans& means, std::vector<MeasuredHead>& heads);

}  // namespace attnscope
