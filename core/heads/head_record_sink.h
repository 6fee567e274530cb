#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "core/heads/head_record.h"
#include "core/reduce/head_metrics.h"
#include "core/reduce/reduction_stream.h"

namespace attnscope {

/// The arrays to record of heads, with class thresholds and token strings.
struct HeadRecordOptions {
  std::vector<HeadArray> arrays;  ///< no array twice
  ClassThresholds thresholds;
  /// The strings of the text tokens of each job's keys; a list may be empty or shorter than the
  /// text. Borrowed.
  std::vector<std::span<const std::string>> tokens;
};

/// Makes a record of every head of a stream of reductions. The jobs' requests must be those of
/// metrics_request() and request_arrays().
class HeadRecordSink : public ReductionSink {
 public:
  using Take = std::function<void(HeadRecord record)>;
  /// Borrows the jobs. `take` gets each record when its head is done, one at a time, in no
  /// particular order; what it throws ends the stream.
  HeadRecordSink(std::span<const ReductionJob> jobs, HeadRecordOptions options, Take take);

  /// Bytes of the arrays of rows that are held of a head under way.
  static int64_t head_bytes(std::span<const HeadArray> arrays, std::span<const ReductionJob> jobs);

  void panel(int64_t job, int64_t first, const PanelReduction& panel) override;
  void head(int64_t number, const HeadTotals& totals) override;

 private:
  std::vector<HeadArrayValues> empty_arrays(const ReductionJob& job) const;
  std::vector<HeadArrayValues>& rows_of(int64_t job);
  std::vector<HeadArrayValues> take_rows(int64_t job);

  const std::span<const ReductionJob> jobs_;
  const HeadRecordOptions options_;
  const Take take_;
  std::mutex mutex_;
  std::map<int64_t, std::vector<HeadArrayValues>> rows_;  ///< [job], of heads under way
};

}  // namespace attnscope
