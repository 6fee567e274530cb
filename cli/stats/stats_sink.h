#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "cli/stats/stats_options.h"
#include "cli/stats/stats_record.h"
#include "core/reduce/reduction_stream.h"
#include "io/results/stats_journal.h"

namespace attnscope {

/// Makes a record of every head and keeps it, in the journal too where there is one.
class RecordSink : public ReductionSink {
 public:
  /// Borrows everything; `calls` has one entry a job.
  RecordSink(std::span<const ReductionJob> jobs, std::span<const CallEntry* const> calls,
             const StatsOptions& options, const ClassThresholds& thresholds, StatsJournal* journal);
  ~RecordSink() override;

  /// Bytes of the rows' values that are held at a time, for `heads` heads.
  static int64_t bytes(const StatsOptions& options, std::span<const ReductionJob> jobs,
                       int64_t heads);

  void panel(int64_t job, int64_t first, const PanelReduction& panel) override;
  void head(int64_t number, const HeadTotals& totals) override;

  size_t done() const;
  std::vector<nlohmann::ordered_json> take_records();

 private:
  StatsRows& rows_of(int64_t job);

  const std::span<const ReductionJob> jobs_;
  const std::span<const CallEntry* const> calls_;
  const StatsOptions& options_;
  const ClassThresholds& thresholds_;
  StatsJournal* journal_;
  const bool wants_rows_;
  std::mutex mutex_;
  std::map<int64_t, StatsRows> rows_;
  std::vector<nlohmann::ordered_json> records_;
};

}  // namespace attnscope
