#include "core/products/differences/pair_stream.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <string>
#include <thread>

#include "core/base/aligned_vector.h"
#include "core/base/budget_error.h"
#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "core/base/start_thread.h"
#include "core/stream/progress_report.h"

namespace attnscope {
namespace {

int64_t shared_workspace_bytes(const HeadMap& a, const HeadMap& b, int64_t rows) {
  return std::max(a.workspace_bytes(rows), b.workspace_bytes(rows));
}

/// Panel heights to try for a worker, the fastest first: a backend reads K once for all its rows.
std::vector<int64_t> row_choices(const HeadMap& a, const HeadMap& b) {
  std::vector<int64_t> choices;
  const int64_t rows = std::max<int64_t>(1, a.rows());
  for (int64_t most = std::max(a.panel_rows(), b.panel_rows()); most > 0; most /= 2) {
    choices.push_back(std::min(most, rows));
  }
  return choices;
}

/// The panels of a pair and what workers share. Thread-safe.
class PairStream {
 public:
  PairStream(const HeadMap& a, const HeadMap& b, PairSink& sink, const DifferencePlan& plan,
             const StreamControl& control)
      : a_(a),
        b_(b),
        sink_(sink),
        plan_(plan),
        control_(control),
        runs_(sink.runs(a.rows(), plan.rows)),
        progress_(control.progress, static_cast<int64_t>(runs_.size())) {
    sink.begin(runs_, a.keys());
  }

  /// A worker's thread.
  void work() {
    try {
      const auto a = a_.reader(plan_.rows), b = b_.reader(plan_.rows);
      AlignedVector<std::byte> workspace(
          static_cast<size_t>(shared_workspace_bytes(a_, b_, plan_.rows)));
      const auto runs = static_cast<int64_t>(runs_.size());
      for (int64_t run = next_++; run < runs; run = next_++) {
        if (!take(run, *a, *b, workspace)) return;
        progress_.add_tile();
      }
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!failed_.exchange(true)) error_ = std::current_exception();
    }
  }

  bool finish() {
    if (error_) std::rethrow_exception(error_);
    if (!progress_.complete()) return false;
    progress_.finish();
    return true;
  }

 private:
  /// In panels of about equal size; whether nothing stopped it.
  bool take(int64_t number, MapRows& a, MapRows& b, std::span<std::byte> workspace) {
    const IndexRange run = runs_[static_cast<size_t>(number)];
    const int64_t panels = ceil_div(run.size(), plan_.rows);
    for (int64_t i = 0; i < panels; ++i) {
      if (failed_ || control_.stop.stop_requested()) return false;
      const IndexRange rows{run.begin + run.size() * i / panels,
                            run.begin + run.size() * (i + 1) / panels};
      a.read(rows, workspace);
      b.read(rows, workspace);
      for (int64_t row = 0; row < rows.size(); ++row) {
        sink_.add(number, rows.begin + row, {a.row(row), b.row(row), a.lse(row), b.lse(row)});
      }
    }
    return true;
  }

  const HeadMap &a_, &b_;
  PairSink& sink_;
  const DifferencePlan& plan_;
  const StreamControl& control_;
  const std::vector<IndexRange> runs_;
  std::atomic<int64_t> next_{0};
  ProgressReport progress_;
  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  std::exception_ptr error_;
};

}  // namespace

DifferencePlan plan_pair(const HeadMap& a, const HeadMap& b, const PairSink& sink,
                         const MemoryRoom& room, int max_workers) {
  const int64_t fixed = a.resident_bytes() + b.resident_bytes() +
                        std::max(a.transient_bytes(), b.transient_bytes()) +
                        sink.bytes(a.rows(), a.keys());
  DifferencePlan plan;
  plan.flops = a.flops() + b.flops();
  plan.entries = 2 * static_cast<double>(a.rows()) * static_cast<double>(a.keys());
  int64_t smallest = INT64_MAX;
  for (int workers = max_workers; workers > 0; --workers) {
    for (const int64_t rows : row_choices(a, b)) {
      plan.workers = workers;
      plan.rows = rows;
      plan.bytes =
          fixed + workers * (a.reader_bytes(rows) + b.reader_bytes(rows) +
                             shared_workspace_bytes(a, b, rows) + sink.worker_bytes(a.keys()));
      smallest = std::min(smallest, plan.bytes);
      if (plan.bytes <= room.bytes) return plan;
    }
  }
  throw BudgetError(room, smallest, " for two heads");
}

bool stream_pair(HeadMap& a, HeadMap& b, PairSink& sink, const DifferencePlan& plan,
                 MemoryBudget& budget, const StreamControl& control) {
  const MemoryReservation reserved = budget.reserve(plan.bytes, "two heads and their rows");
  a.prepare();
  b.prepare();
  PairStream stream(a, b, sink, plan, control);
  {
    std::vector<std::jthread> helpers;
    start_helpers(helpers, static_cast<size_t>(plan.workers - 1),
                  [&](size_t) { return [&stream] { stream.work(); }; });
    stream.work();
  }
  return stream.finish();
}

std::vector<IndexRange> equal_runs(int64_t rows, int64_t size) {
  std::vector<IndexRange> runs;
  for (int64_t first = 0; first < rows; first += size) {
    runs.push_back({first, std::min(rows, first + size)});
  }
  return runs;
}

}  // namespace attnscope
