#include "cli/stats/stats_sink.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

namespace attnscope {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

bool is_of_rows(const std::string& array) { return array.ends_with("_rows"); }

}  // namespace

RecordSink::RecordSink(std::span<const ReductionJob> jobs, std::span<const CallEntry* const> calls,
                       const StatsOptions& options, const ClassThresholds& thresholds,
                       StatsJournal* journal)
    : jobs_(jobs),
      calls_(calls),
      options_(options),
      thresholds_(thresholds),
      journal_(journal),
      wants_rows_(std::any_of(options.extras.begin(), options.extras.end(), is_of_rows)) {}

RecordSink::~RecordSink() = default;

int64_t RecordSink::bytes(const StatsOptions& options, std::span<const ReductionJob> jobs,
                          int64_t heads) {
  int64_t rows = 0;
  for (const ReductionJob& job : jobs) rows = std::max(rows, job.task.num_rows());
  return std::count_if(options.extras.begin(), options.extras.end(), is_of_rows) * rows * heads * 8;
}

StatsRows& RecordSink::rows_of(int64_t job) {
  const std::lock_guard lock(mutex_);
  StatsRows& rows = rows_[job];
  const auto count = static_cast<size_t>(jobs_[static_cast<size_t>(job)].task.num_rows());
  const auto make = [&](const char* name, std::vector<double>& values) {
    if (options_.wants(name) && values.empty()) values.assign(count, kNone);
  };
  make("entropy_rows", rows.entropy);
  make("max_weight_rows", rows.max_weight);
  make("max_key_rows", rows.max_key);
  make("lse_rows", rows.lse);
  return rows;
}

void RecordSink::panel(int64_t job, int64_t first, const PanelReduction& panel) {
  if (!wants_rows_) return;
  StatsRows& rows = rows_of(job);
  for (int64_t i = 0; i < panel.num_rows(); ++i) {
    const RowReduction& row = panel.row(i);
    const auto at = static_cast<size_t>(first + i);
    if (row.masked) {
      if (!rows.max_key.empty()) rows.max_key[at] = -1;
      continue;
    }
    if (!rows.entropy.empty() && panel.request().entropy) rows.entropy[at] = row.entropy;
    if (!rows.max_weight.empty()) rows.max_weight[at] = row.max_weight;
    if (!rows.max_key.empty()) rows.max_key[at] = static_cast<double>(row.max_key);
    if (!rows.lse.empty() && row.norm.sum > 0) rows.lse[at] = row.norm.lse();
  }
}

void RecordSink::head(int64_t number, const HeadTotals& totals) {
  const ReductionJob& job = jobs_[static_cast<size_t>(number)];
  const HeadMetrics metrics =
      head_metrics(totals, job.task, job.request, job.task.problem->num_queries(), thresholds_);
  StatsRows rows;
  {
    const std::lock_guard lock(mutex_);
    auto node = rows_.extract(number);
    if (!node.empty()) rows = std::move(node.mapped());
  }
  records_.push_back(stats_record(*calls_[static_cast<size_t>(number)], job.task, metrics, totals,
                                  job.request, options_.extras, rows));
  if (journal_ != nullptr) journal_->append(records_.back());
}

size_t RecordSink::done() const { return records_.size(); }

std::vector<nlohmann::ordered_json> RecordSink::take_records() { return std::move(records_); }

}  // namespace attnscope
