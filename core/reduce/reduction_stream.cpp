#include "core/reduce/reduction_stream.h"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "core/base/budget_error.h"
#include "core/base/checked_math.h"
#include "core/stream/panel.h"
#include "core/stream/panel_queue.h"
#include "core/stream/panel_run.h"
#include "core/stream/progress_report.h"

namespace attnscope {
namespace {

/// Rows of a worker's workspace, the fastest first: a backend reads K once for all of them.
constexpr int64_t kCallRows[] = {96, 48, 24, 12, 1};
/// Panels a worker should get at least, so that all finish at about the same time.
constexpr int64_t kPanelsPerWorker = 4;
constexpr int64_t kMostPanelRows = 384;

std::vector<HeadTask> tasks_of(std::span<const ReductionJob> jobs) {
  std::vector<HeadTask> tasks;
  for (const ReductionJob& job : jobs) tasks.push_back(job.task);
  return tasks;
}

/// Jobs whose memory is to be looked at: heads of one call are alike.
std::vector<const ReductionJob*> distinct_jobs(std::span<const ReductionJob> jobs) {
  std::vector<const ReductionJob*> distinct;
  for (const ReductionJob& job : jobs) {
    if (distinct.empty() || distinct.back()->task.problem != job.task.problem) {
      distinct.push_back(&job);
    }
  }
  return distinct;
}

/// `rows` of all jobs: where there are many heads, none has to be cut for the workers' sake.
int64_t choose_panel_rows(const ReductionRequest& request, int64_t rows, int64_t workers,
                          int64_t most) {
  const int64_t multiple = PanelReduction::row_multiple(request);
  const int64_t wanted = std::min(most, ceil_div(rows, workers * kPanelsPerWorker));
  return std::max<int64_t>(1, wanted / multiple) * multiple;
}

/// Rows of a panel at most, and rows of a call (0: the whole panel): what is tried, the fastest
/// first.
std::vector<std::pair<int64_t, int64_t>> row_choices(const TileBackend& backend) {
  std::vector<std::pair<int64_t, int64_t>> choices;
  const int64_t whole = backend.whole_panel_rows();
  for (int64_t rows = whole; rows > 0; rows /= 2) choices.emplace_back(rows, 0);
  if (whole > 0) return choices;
  for (const int64_t call_rows : kCallRows) choices.emplace_back(kMostPanelRows, call_rows);
  // The lowest panels that there are.
  choices.emplace_back(1, 1);
  return choices;
}

int64_t worker_bytes(const std::vector<const ReductionJob*>& jobs, const TileBackend& backend,
                     int64_t panel_rows, int64_t call_rows) {
  int64_t most = 0;
  for (const ReductionJob* job : jobs) {
    const AttentionProblem& problem = *job->task.problem;
    const int64_t rows = std::min(panel_rows, job->task.num_rows());
    most = std::max(
        most,
        backend.workspace_bytes(problem, std::min(call_rows, rows), problem.num_keys(), true) +
            rows * (problem.q().row_bytes() + 8) +
            PanelReduction::bytes(job->task, job->request, rows, backend.open_units()));
  }
  return most;
}

/// The totals of the jobs whose panels are under way. Thread-safe.
class OpenHeads {
 public:
  OpenHeads(std::span<const ReductionJob> jobs, int64_t panel_rows, ReductionSink& sink)
      : jobs_(jobs), panel_rows_(panel_rows), sink_(sink) {}

  void add(int64_t number, const PanelReduction& panel) {
    Head& head = open(number);
    {
      const std::lock_guard lock(head.mutex);
      const ReductionJob& job = jobs_[static_cast<size_t>(number)];
      if (head.added == 0) head.totals = HeadTotals(job.task, job.request);
      head.totals.add(job.task, panel);
      if (++head.added < ceil_div(job.task.num_rows(), panel_rows_)) return;
    }
    {
      const std::lock_guard lock(sink_mutex_);
      sink_.head(number, head.totals);
    }
    const std::lock_guard lock(mutex_);
    open_.erase(number);
  }

 private:
  struct Head {
    std::mutex mutex;  ///< of what follows, until all panels were added
    HeadTotals totals;
    int64_t added = 0;  ///< panels
  };

  /// Stays where it is until it is erased.
  Head& open(int64_t number) {
    const std::lock_guard lock(mutex_);
    return open_[number];
  }

  const std::span<const ReductionJob> jobs_;
  const int64_t panel_rows_;
  ReductionSink& sink_;
  std::mutex sink_mutex_;
  std::mutex mutex_;  ///< of the map
  std::map<int64_t, Head> open_;
};

/// One worker's memory and work. Not thread-safe.
class ReductionWorker : public PanelWorker {
 public:
  ReductionWorker(std::span<const ReductionJob> jobs, const TileBackend& backend,
                  const ReductionPlan& plan, OpenHeads& heads, ReductionSink& sink,
                  ProgressReport& progress)
      : jobs_(jobs),
        backend_(backend),
        plan_(plan),
        heads_(heads),
        sink_(sink),
        progress_(progress) {}

  void run(const Panel& panel) override {
    const ReductionJob& job = jobs_[static_cast<size_t>(panel.task)];
    const AttentionProblem& problem = *job.task.problem;
    const auto rows = static_cast<size_t>(panel.rows.size());
    index_.resize(rows);
    queries_.resize(rows * static_cast<size_t>(problem.q().row_bytes()));
    const QueryBlock queries =
        read_query_rows(job.task, *panel.head, panel.rows, index_.data(), queries_.data());
    reduction_.begin(
        job.task, job.request, panel.rows, queries.index,
        [&](int64_t row, std::span<const float> max, std::span<const double> sum) {
          sink_.block_row(panel.task, row, max, sum);
        },
        backend_.open_units());
    const int64_t call_rows = std::min(plan_.call_rows, panel.rows.size());
    workspace_.resize(static_cast<size_t>(
        backend_.workspace_bytes(problem, call_rows, problem.num_keys(), true)));
    for (size_t first = 0; first < rows; first += static_cast<size_t>(call_rows)) {
      const size_t count = std::min(rows - first, static_cast<size_t>(call_rows));
      panel.head->reduce(queries.part(first, count, problem.q().row_bytes()),
                         static_cast<int64_t>(first), reduction_, workspace_);
    }
    sink_.panel(panel.task, panel.rows.begin, reduction_);
    heads_.add(panel.task, reduction_);
    progress_.add_tile();
  }

 private:
  const std::span<const ReductionJob> jobs_;
  const TileBackend& backend_;
  const ReductionPlan& plan_;
  OpenHeads& heads_;
  ReductionSink& sink_;
  ProgressReport& progress_;
  PanelReduction reduction_;
  std::vector<int64_t> index_;
  AlignedVector<std::byte> queries_, workspace_;
};

/// Takes results and keeps nothing.
class NullReductionSink : public ReductionSink {
 public:
  void head(int64_t, const HeadTotals&) override {}
};

/// Entries of the job that the mask leaves to compute, asked of it `rows` rows at a time.
int64_t entries_of(const ReductionJob& job, int64_t rows) {
  constexpr int64_t kKeys = 512;
  int64_t entries = 0;
  for (int64_t begin = 0; begin < job.task.num_rows(); begin += rows) {
    const IndexRange panel{begin, std::min(begin + rows, job.task.num_rows())};
    add_area(entries, unmasked_entries(job.task, panel, kKeys), 1);
  }
  return entries;
}

double flops_of(const ReductionJob& job, int64_t entries) {
  return 2.0 * static_cast<double>(job.task.problem->head_dim()) * static_cast<double>(entries);
}

}  // namespace

std::string ReductionPlan::describe() const {
  return std::to_string(workers) + (workers == 1 ? " worker" : " workers") + ", panels of " +
         std::to_string(panel_rows) + " rows, reduced " + std::to_string(call_rows) +
         " rows at a time, " + std::to_string(bound_heads) +
         (bound_heads == 1 ? " bound head, " : " bound heads, ") + format_bytes(bytes_total);
}

ReductionPlan plan_reductions(std::span<const ReductionJob> jobs, const TileBackend& backend,
                              const MemoryRoom& room, int max_workers, int64_t sink_head_bytes) {
  assert(!jobs.empty());
  const auto distinct = distinct_jobs(jobs);
  int64_t resident = 0;
  int64_t transient = 0;
  int64_t totals = 0;
  for (const ReductionJob* job : distinct) {
    const TileBackend::BindCost cost = backend.bind_cost(*job->task.problem);
    resident = std::max(resident, cost.resident);
    transient = std::max(transient, cost.transient);
    totals = std::max(totals, HeadTotals::bytes(job->task, job->request));
  }
  ReductionPlan plan;
  for (const ReductionJob& job : jobs) {
    const int64_t entries = entries_of(job, kMostPanelRows);
    plan.rows += job.task.num_rows();
    plan.flops += flops_of(job, entries);
    plan.entries += static_cast<double>(entries);
  }
  const std::vector<HeadTask> tasks = tasks_of(jobs);
  int64_t smallest = INT64_MAX;
  const int64_t most_workers = std::max(1, max_workers > 0 ? max_workers : backend.workers());
  for (int64_t workers = most_workers; workers > 0; --workers) {
    for (const auto& [most_rows, most_call_rows] : row_choices(backend)) {
      plan.panel_rows = choose_panel_rows(jobs.front().request, plan.rows, workers, most_rows);
      const int64_t call_rows = most_call_rows > 0 ? most_call_rows : plan.panel_rows;
      plan.bytes_per_worker = worker_bytes(distinct, backend, plan.panel_rows, call_rows);
      const HeadsInFlight wanted = heads_in_flight(count_panels(tasks, plan.panel_rows), workers);
      for (int64_t heads = wanted.most; heads >= wanted.least; --heads) {
        plan.workers = static_cast<int>(workers);
        plan.call_rows = call_rows;
        plan.bound_heads = heads;
        plan.bytes_total = heads * (resident + totals + sink_head_bytes) +
                           std::min(workers, heads) * transient + workers * plan.bytes_per_worker;
        smallest = std::min(smallest, plan.bytes_total);
        if (plan.bytes_total > room.bytes) continue;
        for (const ReductionJob& job : jobs) {
          plan.panels += ceil_div(job.task.num_rows(), plan.panel_rows);
        }
        return plan;
      }
    }
  }
  throw BudgetError(room, smallest);
}

bool ReductionStream::run(std::span<const ReductionJob> jobs, const ReductionPlan& plan,
                          ReductionSink& sink, const StreamControl& control) {
  const MemoryReservation reserved = budget_.reserve(plan.bytes_total, "the reductions");
  const std::vector<HeadTask> tasks = tasks_of(jobs);
  ProgressReport progress(control.progress, plan.panels);
  PanelQueue queue(tasks, backend_,
                   {.panel_rows = plan.panel_rows,
                    .bound_heads = plan.bound_heads,
                    .workers = plan.workers,
                    .next_task = control.next_task});
  OpenHeads heads(jobs, plan.panel_rows, sink);
  run_panels(queue, {.workers = plan.workers, .stop = control.stop, .make_worker = [&] {
                       return std::make_unique<ReductionWorker>(jobs, backend_, plan, heads, sink,
                                                                progress);
                     }});
  if (!queue.is_used_up()) return false;
  assert((control.next_task || progress.complete()) && "every panel is counted");
  progress.finish();
  return true;
}

double ReductionStream::expected_seconds(std::span<const ReductionJob> jobs,
                                         const ReductionPlan& plan) {
  const ReductionJob& dearest =
      *std::max_element(jobs.begin(), jobs.end(), [](const ReductionJob& a, const ReductionJob& b) {
        return full_flops(a.task) < full_flops(b.task);
      });
  const auto compute = [&](int64_t panels) {
    const std::vector<int64_t> rows = sampled_panels(dearest.task, plan.panel_rows, panels);
    ReductionJob part = dearest;
    part.task.row_list = rows;
    ReductionPlan small = plan;
    small.bound_heads = 1;
    small.panels = ceil_div(part.task.num_rows(), plan.panel_rows);
    NullReductionSink sink;
    const auto start = std::chrono::steady_clock::now();
    run({&part, 1}, small, sink);
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    return std::pair(flops_of(part, entries_of(part, plan.panel_rows)), spent.count());
  };
  if (plan.flops <= 0) return 0;
  // The time that both samples spend on packing the keys falls out of their difference.
  const auto [few_flops, few_seconds] = compute(plan.workers);
  const auto [more_flops, more_seconds] = compute(3 * int64_t{plan.workers});
  const double flops = more_flops - few_flops;
  const double seconds = more_seconds - few_seconds;
  if (flops <= 0 || seconds <= 0) {
    return more_flops <= 0 ? more_seconds : plan.flops / more_flops * more_seconds;
  }
  const double packing = std::max(0.0, few_seconds - few_flops / flops * seconds);
  return packing * static_cast<double>(jobs.size()) + plan.flops / flops * seconds;
}

}  // namespace attnscope
