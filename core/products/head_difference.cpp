#include "core/products/head_difference.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <limits>
#include <memory>
#include <mutex>
#include <numeric>
#include <thread>

#include "core/base/aligned_vector.h"
#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "core/base/start_thread.h"
#include "core/stream/panel.h"
#include "core/stream/progress_report.h"

namespace attnscope {
namespace {

/// Rows of a worker, the fastest first: a backend reads K once for all of them.
constexpr int64_t kPairRows[] = {48, 24, 12, 4, 1};

const AttentionProblem& problem_of(const HeadTask& task) { return *task.problem; }

bool is_one_head(const HeadPair& pair) {
  return pair.a.problem == pair.b.problem && pair.a.batch == pair.b.batch &&
         pair.a.head == pair.b.head;
}

int64_t pair_side_bytes(const HeadTask& task, int64_t rows) {
  const AttentionProblem& problem = problem_of(task);
  const int64_t row = problem.q().row_bytes() +
                      problem.num_keys() * static_cast<int64_t>(sizeof(float)) +
                      static_cast<int64_t>(sizeof(int64_t) + sizeof(RowNorm));
  return rows * row;
}

int64_t pair_worker_bytes(const HeadPair& pair, const TileBackend& backend, int64_t rows) {
  int64_t workspace = 0;
  for (const HeadTask* task : {&pair.a, &pair.b}) {
    const AttentionProblem& problem = problem_of(*task);
    workspace =
        std::max(workspace, backend.workspace_bytes(problem, rows, problem.num_keys(), true));
  }
  return pair_side_bytes(pair.a, rows) + pair_side_bytes(pair.b, rows) + workspace;
}

/// Both heads, made ready.
struct BoundPair {
  BoundPair(const HeadPair& pair, const TileBackend& backend)
      : first(backend.bind(problem_of(pair.a), pair.a.batch, pair.a.head)) {
    if (!is_one_head(pair)) {
      second = backend.bind(problem_of(pair.b), pair.b.batch, pair.b.head);
    }
  }
  const BoundHead& a() const { return *first; }
  const BoundHead& b() const { return second ? *second : *first; }
  std::unique_ptr<BoundHead> first, second;
};

/// Rows of one side of the pair. Not thread-safe.
class PairSide {
 public:
  PairSide(const HeadTask& task, const BoundHead& head, int64_t rows)
      : task_(task),
        head_(head),
        keys_(problem_of(task).num_keys()),
        index_(static_cast<size_t>(rows)),
        norms_(static_cast<size_t>(rows)),
        queries_(static_cast<size_t>(rows * problem_of(task).q().row_bytes())),
        entries_(static_cast<size_t>(rows * keys_)) {}

  void compute(IndexRange rows, std::span<std::byte> workspace) {
    const QueryBlock queries = read_query_rows(task_, rows, index_.data(), queries_.data());
    auto* const block = reinterpret_cast<std::byte*>(entries_.data());
    const EmitTarget target{{&block, 1}, keys_, keys_, Encoding::f32};
    const auto count = static_cast<size_t>(rows.size());
    if (is_normalised(problem_of(task_).score())) {
      head_.emit_panel(queries, std::span(norms_).first(count), {0, keys_}, target, workspace);
    } else {
      head_.emit(queries, {}, {0, keys_}, Quantity::weights, target, workspace);
    }
  }
  std::span<const float> row(int64_t i) const {
    return {entries_.data() + i * keys_, static_cast<size_t>(keys_)};
  }
  double lse(int64_t i) const { return norms_[static_cast<size_t>(i)].lse(); }

 private:
  const HeadTask& task_;
  const BoundHead& head_;
  const int64_t keys_;
  std::vector<int64_t> index_;
  std::vector<RowNorm> norms_;
  AlignedVector<std::byte> queries_;
  AlignedVector<float> entries_;
};

double lse_difference(double a, double b) {
  const double difference = a - b;
  return std::isfinite(difference) ? difference : std::numeric_limits<double>::quiet_NaN();
}

/// The panels of a pair and what workers share. Thread-safe.
class PairStream {
 public:
  PairStream(const HeadPair& pair, const DifferencePlan& plan, const TileBackend& backend,
             const StreamControl& control)
      : pair_(pair),
        plan_(plan),
        backend_(backend),
        control_(control),
        bound_(pair, backend),
        panels_(ceil_div(pair.a.num_rows(), plan.rows)),
        progress_(control.progress, panels_),
        rows_(static_cast<size_t>(pair.a.num_rows())) {}

  /// A worker's thread.
  void work() {
    try {
      PairSide a(pair_.a, bound_.a(), plan_.rows), b(pair_.b, bound_.b(), plan_.rows);
      AlignedVector<std::byte> workspace(static_cast<size_t>(
          std::max(backend_.workspace_bytes(problem_of(pair_.a), plan_.rows,
                                            problem_of(pair_.a).num_keys(), true),
                   backend_.workspace_bytes(problem_of(pair_.b), plan_.rows,
                                            problem_of(pair_.b).num_keys(), true))));
      for (int64_t panel = next_++; panel < panels_; panel = next_++) {
        if (failed_ || control_.stop.stop_requested()) return;
        const int64_t first = panel * plan_.rows;
        compare({first, std::min(pair_.a.num_rows(), first + plan_.rows)}, a, b, workspace);
        progress_.add_tile();
      }
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!failed_.exchange(true)) error_ = std::current_exception();
    }
  }

  std::optional<std::vector<RowDifference>> take() {
    if (error_) std::rethrow_exception(error_);
    if (!progress_.complete()) return std::nullopt;
    progress_.finish();
    return std::move(rows_);
  }

 private:
  void compare(IndexRange rows, PairSide& a, PairSide& b, std::span<std::byte> workspace) {
    a.compute(rows, workspace);
    b.compute(rows, workspace);
    const bool normalised = is_normalised(problem_of(pair_.a).score());
    for (int64_t i = 0; i < rows.size(); ++i) {
      RowDifference& row = rows_[static_cast<size_t>(rows.begin + i)];
      row = compare_rows(a.row(i), b.row(i), normalised);
      if (normalised) row.lse = lse_difference(a.lse(i), b.lse(i));
    }
  }

  const HeadPair& pair_;
  const DifferencePlan& plan_;
  const TileBackend& backend_;
  const StreamControl& control_;
  const BoundPair bound_;
  const int64_t panels_;
  std::atomic<int64_t> next_{0};
  ProgressReport progress_;
  std::vector<RowDifference> rows_;  ///< each written by one worker
  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  std::exception_ptr error_;
};

std::string map_size_text(const AttentionProblem& problem) {
  return problem.name() + " has " + std::to_string(problem.num_queries()) + " queries and " +
         std::to_string(problem.num_keys()) + " keys";
}

}  // namespace

void check_comparable(const AttentionProblem& a, const AttentionProblem& b) {
  if (a.num_queries() != b.num_queries() || a.num_keys() != b.num_keys()) {
    throw usage_error("maps of different sizes cannot be compared: " + map_size_text(a) + ", " +
                      map_size_text(b));
  }
  if (a.score() != b.score()) {
    throw usage_error("weights of different scores cannot be compared: " + a.name() + " is " +
                      std::string(score_name(a.score())) + ", " + b.name() + " " +
                      std::string(score_name(b.score())));
  }
}

DifferencePlan plan_difference(const HeadPair& pair, const TileBackend& backend,
                               int64_t budget_bytes, int max_workers) {
  const TileBackend::BindCost a = backend.bind_cost(problem_of(pair.a));
  const TileBackend::BindCost b = backend.bind_cost(problem_of(pair.b));
  const int64_t rows = pair.a.num_rows();
  const int64_t heads = a.resident + (is_one_head(pair) ? 0 : b.resident) +
                        std::max(a.transient, b.transient) +
                        rows * static_cast<int64_t>(sizeof(RowDifference));
  DifferencePlan plan;
  for (const HeadTask* task : {&pair.a, &pair.b}) {
    plan.flops += full_flops(*task);
    plan.entries += static_cast<double>(rows) * static_cast<double>(task->problem->num_keys());
  }
  int64_t smallest = INT64_MAX;
  for (int workers = max_workers > 0 ? max_workers : backend.workers(); workers > 0; --workers) {
    for (const int64_t most : kPairRows) {
      plan.workers = workers;
      plan.rows = std::min(most, rows);
      plan.bytes = heads + workers * pair_worker_bytes(pair, backend, plan.rows);
      smallest = std::min(smallest, plan.bytes);
      if (plan.bytes <= budget_bytes) return plan;
    }
  }
  throw Error(ErrorCode::resource,
              "a memory budget of " + std::to_string(budget_bytes) + "B (" +
                  format_bytes(budget_bytes) + ") is too small for two heads: the smallest that " +
                  "works is " + std::to_string(smallest) + "B (" + format_bytes(smallest) + ")");
}

std::optional<std::vector<RowDifference>> compare_heads(const HeadPair& pair,
                                                        const DifferencePlan& plan,
                                                        const TileBackend& backend,
                                                        MemoryBudget& budget,
                                                        const StreamControl& control) {
  check_comparable(problem_of(pair.a), problem_of(pair.b));
  const MemoryReservation reserved = budget.reserve(plan.bytes, "two heads and their rows");
  PairStream stream(pair, plan, backend, control);
  {
    std::vector<std::jthread> helpers;
    start_helpers(helpers, static_cast<size_t>(plan.workers - 1),
                  [&](size_t) { return [&stream] { stream.work(); }; });
    stream.work();
  }
  return stream.take();
}

std::vector<int64_t> ranked_rows(std::span<const double> divergence, size_t most) {
  std::vector<int64_t> order;
  for (size_t i = 0; i < divergence.size(); ++i) {
    if (!std::isnan(divergence[i])) order.push_back(static_cast<int64_t>(i));
  }
  const auto count = static_cast<std::ptrdiff_t>(std::min(most, order.size()));
  std::partial_sort(order.begin(), order.begin() + count, order.end(), [&](int64_t a, int64_t b) {
    const double x = divergence[static_cast<size_t>(a)], y = divergence[static_cast<size_t>(b)];
    return x > y || (x == y && a < b);
  });
  order.resize(static_cast<size_t>(count));
  return order;
}

namespace {

/// Whole maps are divided by rows, then by keys, so that they have the bits that they always had.
double mean_of_entries(double sum, const HeadDifference& head, int64_t keys) {
  const auto at_least_one = [](int64_t count) {
    return static_cast<double>(std::max<int64_t>(1, count));
  };
  if (head.entries < head.entries_of) return sum / at_least_one(head.entries);
  return sum / at_least_one(head.rows) / static_cast<double>(keys);
}

}  // namespace

HeadDifference summarise_rows(const ComparedRows& of, std::span<const RowDifference> rows,
                              int64_t top) {
  HeadDifference head;
  head.rows = std::ssize(rows);
  head.rows_of = of.rows_of;
  head.entries_of = head.rows * of.keys;
  double sum = 0, whole_sum = 0, divergences = 0, entropies = 0, cosines = 0, lses = 0;
  int64_t whole = 0, compared = 0, with_cosine = 0, with_lse = 0;
  std::vector<double> divergence;
  for (int64_t i = 0; i < head.rows; ++i) {
    const RowDifference& row = rows[static_cast<size_t>(i)];
    const bool is_whole = row.entries == of.keys;
    sum += row.sum_abs;
    head.entries += row.entries;
    if (is_whole) {
      ++whole;
      whole_sum += row.sum_abs;
    }
    if (i == 0 || row.max_abs > head.max_abs) {
      head.max_abs = row.max_abs;
      head.max_row = of.query_at(i);
      head.max_key = of.first_key + row.max_key;
    }
    divergence.push_back(row.divergence);
    if (!std::isnan(row.divergence)) {
      ++compared;
      divergences += row.divergence;
      entropies += row.entropy;
    } else if (of.normalised && is_whole) {
      ++head.masked_rows;
    }
    if (!std::isnan(row.cosine)) {
      ++with_cosine;
      cosines += row.cosine;
    }
    if (std::isnan(row.lse)) continue;
    ++with_lse;
    lses += row.lse;
    if (!head.lse_max_abs || std::abs(row.lse) > *head.lse_max_abs) {
      head.lse_max_abs = std::abs(row.lse);
      head.lse_row = of.query_at(i);
    }
  }
  head.mean_abs = mean_of_entries(sum, head, of.keys);
  if (whole > 0 && of.weights) head.total_variation = whole_sum / static_cast<double>(whole) / 2;
  if (with_cosine > 0) head.cosine_mean = cosines / static_cast<double>(with_cosine);
  if (with_lse > 0) head.lse_mean = lses / static_cast<double>(with_lse);
  if (compared == 0) return head;
  head.divergence_mean = divergences / static_cast<double>(compared);
  head.entropy_change = entropies / static_cast<double>(compared);
  for (const int64_t i : ranked_rows(divergence, static_cast<size_t>(std::max<int64_t>(1, top)))) {
    head.top.push_back({of.query_at(i), divergence[static_cast<size_t>(i)]});
  }
  head.divergence_max = head.top.front().divergence;
  head.divergence_row = head.top.front().row;
  if (top == 0) head.top.clear();
  return head;
}

HeadDifference summarise_rows(const HeadPair& pair, std::span<const RowDifference> rows,
                              int64_t top) {
  const AttentionProblem& problem = problem_of(pair.a);
  std::vector<int64_t> queries;
  for (int64_t i = 0; i < pair.a.num_rows(); ++i) queries.push_back(pair.a.row_at(i));
  return summarise_rows(ComparedRows{problem.num_queries(), problem.num_keys(),
                                     is_normalised(problem.score()), true, queries},
                        rows, top);
}

}  // namespace attnscope
