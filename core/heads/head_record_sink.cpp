#include "core/heads/head_record_sink.h"

#include <algorithm>
#include <limits>

namespace attnscope {
namespace {

bool is_of_rows(HeadArray which) { return info_of(which).of_row != nullptr; }

}  // namespace

HeadRecordSink::HeadRecordSink(std::span<const ReductionJob> jobs, HeadRecordOptions options,
                               Take take)
    : jobs_(jobs), options_(std::move(options)), take_(std::move(take)) {}

int64_t HeadRecordSink::head_bytes(std::span<const HeadArray> arrays,
                                   std::span<const ReductionJob> jobs) {
  int64_t rows = 0;
  for (const ReductionJob& job : jobs) rows = std::max(rows, job.task.num_rows());
  return std::count_if(arrays.begin(), arrays.end(), is_of_rows) * rows *
         static_cast<int64_t>(sizeof(double));
}

std::vector<HeadArrayValues> HeadRecordSink::empty_arrays(const ReductionJob& job) const {
  const int64_t count = job.task.num_rows();
  std::vector<HeadArrayValues> arrays;
  for (const HeadArray which : options_.arrays) {
    if (!is_of_rows(which)) continue;
    arrays.push_back({which,
                      {count},
                      std::vector<double>(static_cast<size_t>(count),
                                          std::numeric_limits<double>::quiet_NaN())});
  }
  return arrays;
}

std::vector<HeadArrayValues>& HeadRecordSink::rows_of(int64_t job) {
  const std::lock_guard lock(mutex_);
  const auto [entry, is_new] = rows_.try_emplace(job);
  if (is_new) entry->second = empty_arrays(jobs_[static_cast<size_t>(job)]);
  return entry->second;
}

std::vector<HeadArrayValues> HeadRecordSink::take_rows(int64_t job) {
  const std::lock_guard lock(mutex_);
  auto node = rows_.extract(job);
  return node.empty() ? empty_arrays(jobs_[static_cast<size_t>(job)]) : std::move(node.mapped());
}

void HeadRecordSink::panel(int64_t job, int64_t first, const PanelReduction& panel) {
  if (std::none_of(options_.arrays.begin(), options_.arrays.end(), is_of_rows)) return;
  // Panels write different rows of the same arrays.
  for (HeadArrayValues& array : rows_of(job)) {
    const auto value = info_of(array.which).of_row;
    for (int64_t i = 0; i < panel.num_rows(); ++i) {
      array.values[static_cast<size_t>(first + i)] = value(panel.row(i), panel.request());
    }
  }
}

void HeadRecordSink::head(int64_t number, const HeadTotals& totals) {
  const ReductionJob& job = jobs_[static_cast<size_t>(number)];
  const HeadTask& task = job.task;
  HeadRecord record;
  record.name = head_name(task.problem->id(), task.batch, task.head);
  record.metrics =
      head_metrics(totals, task, job.request, task.problem->num_queries(), options_.thresholds);
  const std::span<const std::string> tokens = options_.tokens[static_cast<size_t>(number)];
  for (Sink& sink : record.metrics.sinks) {
    if (!sink.text_index || static_cast<size_t>(*sink.text_index) >= tokens.size()) continue;
    sink.token = tokens[static_cast<size_t>(*sink.text_index)];
  }
  std::vector<HeadArrayValues> of_rows = take_rows(number);
  for (const HeadArray which : options_.arrays) {
    if (!is_of_rows(which)) {
      record.arrays.push_back(array_of_totals(which, totals, *task.problem));
      continue;
    }
    const auto found = std::find_if(of_rows.begin(), of_rows.end(),
                                    [&](const HeadArrayValues& a) { return a.which == which; });
    record.arrays.push_back(std::move(*found));
  }
  take_(std::move(record));
}

}  // namespace attnscope
