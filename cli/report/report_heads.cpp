#include "cli/report/report_heads.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <thread>
#include <utility>

#include "cli/common/head_table.h"
#include "cli/run/call_heads.h"
#include "cli/run/run_steps.h"
#include "core/base/error.h"
#include "core/base/start_thread.h"
#include "core/heads/head_record_sink.h"
#include "core/products/differences/map_profiles.h"

namespace attnscope {
namespace {

/// Heads that are measured before the time is looked at again.
constexpr size_t kUnitHeads = 16;
/// Bytes that a head's record takes while it waits for the page, beside its map.
constexpr int64_t kReportRecordBytes = 6 << 10;

int64_t record_bytes(const AttentionProblem& problem) {
  const int64_t parts =
      std::max(problem.key_tokens().frames(), problem.query_tokens().frames()) + 1;
  return kReportRecordBytes + parts * parts * static_cast<int64_t>(sizeof(double));
}

/// Keeps the records of jobs in their order.
class ReportSink final : public ReductionSink {
 public:
  ReportSink(std::span<const ReductionJob> jobs, HeadRecordOptions options)
      : records(jobs.size()), sink_(jobs, std::move(options), [this](HeadRecord record) {
          records[static_cast<size_t>(current_)] = std::move(record);
        }) {}

  void panel(int64_t job, int64_t first, const PanelReduction& panel) override {
    sink_.panel(job, first, panel);
  }
  void head(int64_t job, const HeadTotals& totals) override {
    current_ = job;
    sink_.head(job, totals);
  }

  std::vector<HeadRecord> records;  ///< [jobs]

 private:
  int64_t current_ = 0;
  HeadRecordSink sink_;
};

/// Draws the small maps of jobs, one a job. Blocks beside numbers would round these otherwise than
/// `stats` does, so that maps take a pass of their own.
void draw_maps(StreamRun& run, std::span<const ReductionJob> jobs, std::span<CellMap> maps) {
  if (jobs.front().task.row_list.empty()) {
    std::vector<ReductionJob> blocks;
    for (const ReductionJob& job : jobs) {
      blocks.push_back({job.task, {}});
      blocks.back().request.block = maps.front().block();
    }
    CellSink cells(maps);
    return run.reduce(blocks, cells);
  }
  std::vector<HeadTask> tasks;
  for (const ReductionJob& job : jobs) tasks.push_back(job.task);
  RowCellSink cells(maps);
  run.run(tasks, cells);
}

/// See MeasuredHead::best_query. `arrays` are entropies and largest weights of the task's rows.
std::optional<int64_t> best_query_of(const HeadTask& task,
                                     const std::vector<HeadArrayValues>& arrays) {
  const AttentionProblem& problem = *task.problem;
  const bool by_entropy = is_normalised(problem.score());
  const std::vector<double>& values = arrays[by_entropy ? 0 : 1].values;
  const IndexRange video = problem.query_tokens().video_range();
  std::optional<int64_t> best;
  double least = 0;
  for (int64_t i = 0; i < task.num_rows(); ++i) {
    const int64_t row = task.row_at(i);
    if (!video.empty() && (row < video.begin || row >= video.end)) continue;
    const double value = (by_entropy ? 1 : -1) * values[static_cast<size_t>(i)];
    if (std::isnan(value) || (best && value >= least)) continue;
    best = row;
    least = value;
  }
  return best;
}

/// Whether a failure is one head's or call's, beside which others can be told.
bool is_local(const Error& error) {
  return error.code() == ErrorCode::value || error.code() == ErrorCode::file ||
         error.code() == ErrorCode::usage;
}

std::vector<HeadName> names_of(const SelectedCall& selected) {
  std::vector<HeadName> names;
  for (const int64_t item : selected.batch) {
    for (const int64_t head : selected.heads) {
      names.push_back(head_name(selected.call->problem->id(), item, head));
    }
  }
  return names;
}

/// Measures the heads of one call after the other.
class Measurement {
 public:
  Measurement(const MeasureMeans& means, StatsChoice choice)
      : means_(means), choice_(std::move(choice)) {
    choice_.arrays = measured_arrays();
  }

  void add(const SelectedCall& selected, Progress& progress) {
    const std::vector<HeadName> names = names_of(selected);
    StatsJobs all;
    try {
      all = make_stats_jobs(choice_, {selected});
    } catch (const Error& error) {
      if (!is_local(error)) throw;
      found.problems.emplace_back(error.what());
      progress.update(done_ += std::ssize(names));
      return;
    }
    for (size_t first = 0; first < all.jobs.size(); first += kUnitHeads) {
      const size_t end = std::min(all.jobs.size(), first + kUnitHeads);
      if (means_.time_left()) {
        measure_or_split(selected, all, first, end);
      } else {
        found.not_reached.insert(found.not_reached.end(),
                                 names.begin() + static_cast<int64_t>(first),
                                 names.begin() + static_cast<int64_t>(end));
      }
      progress.update(done_ += static_cast<int64_t>(end - first));
    }
  }

  MeasuredHeads found;

 private:
  void measure_or_split(const SelectedCall& selected, const StatsJobs& all, size_t first,
                        size_t end) {
    try {
      measure(selected, all, first, end);
    } catch (const Error& error) {
      if (!is_local(error)) throw;
      if (end - first == 1) {
        const HeadTask& task = all.jobs[first].task;
        found.problems.push_back(head_label(head_name(task.problem->id(), task.batch, task.head)) +
                                 ": " + error.what());
        return;
      }
      for (size_t i = first; i < end; ++i) measure_or_split(selected, all, i, i + 1);
    }
  }

  void measure(const SelectedCall& selected, const StatsJobs& all, size_t first, size_t end) {
    const AttentionProblem& problem = *selected.call->problem;
    const int64_t queries = problem.num_queries(), keys = problem.num_keys();
    std::vector<ReductionJob> jobs(all.jobs.begin() + static_cast<int64_t>(first),
                                   all.jobs.begin() + static_cast<int64_t>(end));
    const std::vector<std::span<const std::string>> tokens(
        all.tokens.begin() + static_cast<int64_t>(first),
        all.tokens.begin() + static_cast<int64_t>(end));
    std::vector<CellMap> maps(jobs.size(), CellMap::of(queries, keys, kSmallMapCells));
    ReportSink sink(jobs, {choice_.arrays, choice_.thresholds, tokens});
    means_.run.reduce(jobs, sink);
    draw_maps(means_.run, jobs, maps);
    for (size_t i = 0; i < jobs.size(); ++i) {
      MeasuredHead head;
      head.record = std::move(sink.records[i]);
      head.call = selected.call;
      head.map = std::move(maps[i]);
      head.best_query = best_query_of(jobs[i].task, head.record.arrays);
      // What is left is frame_frame.
      head.record.arrays.erase(head.record.arrays.begin(), head.record.arrays.begin() + 2);
      found.heads.push_back(std::move(head));
    }
  }

  const MeasureMeans& means_;
  StatsChoice choice_;
  int64_t done_ = 0;
};

void sort_heads(std::vector<MeasuredHead>& heads) {
  std::vector<HeadRecord> order;
  std::map<HeadName, size_t> places;
  for (size_t i = 0; i < heads.size(); ++i) {
    places[heads[i].record.name] = i;
    order.push_back({heads[i].record.name, {}, {}, {}});
  }
  sort_records(order);
  std::vector<MeasuredHead> sorted;
  sorted.reserve(heads.size());
  for (const HeadRecord& record : order) sorted.push_back(std::move(heads[places.at(record.name)]));
  heads = std::move(sorted);
}

std::optional<double> mean_divergence(const std::vector<NearMap>& others) {
  if (others.empty()) return std::nullopt;
  double sum = 0;
  for (const NearMap& other : others) sum += other.divergence;
  return sum / static_cast<double>(others.size());
}

/// Sets own_way of heads of one call and batch item.
void compare_heads_of(const MeasureMeans& means, std::span<MeasuredHead* const> heads) {
  const AttentionProblem& problem = *heads.front()->call->problem;
  const std::vector<int64_t> rows = profile_rows(problem.num_queries());
  const MemoryReservation held = means.run.budget().reserve(
      std::ssize(heads) * MapProfile::bytes(std::ssize(rows)), "the heads that are compared");
  std::vector<HeadTask> tasks;
  for (const MeasuredHead* head : heads) {
    tasks.push_back(head->task());
    tasks.back().row_list = rows;
  }
  ProfileCollector profiles(tasks);
  means.run.run(tasks, profiles);
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i = next++; i < heads.size() && !means.stop.stop_requested(); i = next++) {
      heads[i]->own_way = mean_divergence(nearest_maps(profiles.profiles(), i, heads.size()));
    }
  };
  std::vector<std::jthread> helpers;
  start_helpers(helpers, static_cast<size_t>(means.run.workers() - 1),
                [&](size_t) { return work; });
  work();
  helpers.clear();
  if (means.stop.stop_requested()) throw interrupted_error(kNothingWritten);
}

/// FLOP of the products of all rows of these heads.
double all_row_flops(const std::vector<SelectedCall>& calls) {
  double flops = 0;
  for (const SelectedCall& selected : calls) {
    const AttentionProblem& p = *selected.call->problem;
    flops += 2.0 * static_cast<double>(p.head_dim()) * static_cast<double>(p.num_queries()) *
             static_cast<double>(p.num_keys()) *
             static_cast<double>(selected.batch.size() * selected.heads.size());
  }
  return flops;
}

}  // namespace

int64_t rows_of_report(int64_t asked, const std::vector<SelectedCall>& calls) {
  constexpr int64_t kSampledRows = 256;
  int64_t longest = 0;
  for (const SelectedCall& call : calls) {
    longest = std::max(longest, call.call->problem->num_queries());
  }
  const int64_t rows = asked > 0 ? asked : all_row_flops(calls) > kSoonFlops ? kSampledRows : 0;
  return rows < longest ? rows : 0;
}

std::vector<HeadArray> measured_arrays() {
  return {HeadArray::entropy_rows, HeadArray::max_weight_rows, HeadArray::frame_frame};
}

MeasuredMemory reserve_heads(MemoryBudget& budget, const std::vector<SelectedCall>& calls,
                             int64_t sample) {
  int64_t heads = 0, rows = 0;
  for (const SelectedCall& selected : calls) {
    const AttentionProblem& problem = *selected.call->problem;
    const int64_t queries = problem.num_queries();
    const int64_t count = head_count({selected});
    heads += count *
             (CellMap::bytes(queries, problem.num_keys(), kSmallMapCells) + record_bytes(problem));
    rows = std::max(rows, std::min<int64_t>(count, kUnitHeads) *
                              (sample > 0 ? std::min(sample, queries) : queries));
  }
  return {budget.reserve(heads, "the heads of the report"),
          budget.reserve(rows * 2 * static_cast<int64_t>(sizeof(double)),
                         "the rows of the report's heads")};
}

MeasuredHeads measure_for_report(const MeasureMeans& means, StatsChoice choice,
                                 const std::vector<SelectedCall>& calls) {
  Measurement measurement(means, std::move(choice));
  Progress progress(means.console, "report", head_count(calls), 1, "heads");
  for (const SelectedCall& selected : calls) measurement.add(selected, progress);
  sort_heads(measurement.found.heads);
  return std::move(measurement.found);
}

bool find_own_ways(const MeasureMeans& means, std::vector<MeasuredHead>& heads) {
  std::map<std::pair<const CallEntry*, int64_t>, std::vector<MeasuredHead*>> groups;
  std::vector<std::pair<const CallEntry*, int64_t>> order;
  for (MeasuredHead& head : heads) {
    if (!head.call->problem->rows_add_up()) continue;
    const std::pair key(head.call, head.record.name.batch);
    if (groups[key].empty()) order.push_back(key);
    groups[key].push_back(&head);
  }
  for (const auto& key : order) {
    const std::vector<MeasuredHead*>& group = groups[key];
    if (group.size() < 2) continue;
    if (!means.time_left()) return false;
    compare_heads_of(means, group);
  }
  return true;
}

}  // namespace attnscope
