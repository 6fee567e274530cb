#include "core/stream/value_check.h"

#include <algorithm>
#include <exception>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <tuple>
#include <vector>

#include "core/base/error.h"
#include "core/base/start_thread.h"
#include "core/problem/finite_check.h"
#include "core/stream/few_rows.h"

namespace attnscope {
namespace {

constexpr size_t kMostThreads = 8;
/// Numbers of q, k and v that a thread more is started for.
constexpr int64_t kNumbersOfThread = int64_t{1} << 18;
/// Numbers that a thread takes at a time.
constexpr int64_t kNumbersOfPiece = int64_t{1} << 18;

/// Tasks of at most so many rows have no others of q scanned, on every backend: a query's rows.
constexpr int64_t kRowsAlone = 16;

/// Some rows of one head of one tensor. Borrowed.
struct Scan {
  const HeadTensor* tensor = nullptr;
  int64_t batch = 0, head = 0;
  IndexRange tokens = {};
  bool left_out = false;  ///< unless one behind it fails

  int64_t numbers() const { return tokens.size() * tensor->width(); }
};

/// The task's rows of q alone: no other is looked at for them, and all would take longer to read
/// than they to compute.
void add_rows(const HeadTask& task, std::vector<Scan>& scans) {
  Scan rows{&task.problem->q(), task.batch, task.head};
  for (int64_t i = 0; i < task.num_rows(); ++i) {
    const int64_t row = task.row_at(i);
    if (i > 0 && row == rows.tokens.end) {
      ++rows.tokens.end;
      continue;
    }
    if (i > 0) scans.push_back(rows);
    rows.tokens = {row, row + 1};
  }
  if (!rows.tokens.empty()) scans.push_back(rows);
}

/// Rows of a head are cut so that threads share them, unless they take less work in order.
void add_scans(Scan head, std::vector<Scan>& scans) {
  const int64_t tokens = head.tensor->tokens();
  const int64_t piece =
      head.tensor->source().prefers_order()
          ? tokens
          : std::clamp<int64_t>(kNumbersOfPiece / head.tensor->width(), 1, tokens);
  for (int64_t begin = 0; begin < tokens; begin += piece) {
    head.tokens = {begin, std::min(begin + piece, tokens)};
    scans.push_back(head);
  }
}

std::vector<Scan> list_scans(std::span<const HeadTask> tasks, const ValueScan& scan) {
  // Query heads share key heads under grouped-query attention.
  std::set<std::tuple<const AttentionProblem*, int64_t, int64_t>> seen, left_out;
  std::vector<Scan> scans;
  for (const HeadTask& task : tasks) {
    const AttentionProblem& problem = *task.problem;
    const int64_t b = task.batch, kv_head = problem.kv_head(task.head);
    const std::tuple keys(&problem, b, kv_head);
    const bool leave = scan.few_rows_of != nullptr && !scan.with_values &&
                       refuses_bad_keys(*scan.few_rows_of, problem, task.num_rows());
    if (task.num_rows() <= kRowsAlone) {
      add_rows(task, scans);
    } else {
      add_scans({&problem.q(), b, task.head}, scans);
    }
    auto& done = leave ? left_out : seen;
    if (!done.insert(keys).second) continue;
    add_scans({.tensor = &problem.k(), .batch = b, .head = kv_head, .left_out = leave}, scans);
    if (scan.with_values) add_scans({&problem.v(), b, kv_head}, scans);
  }
  return scans;
}

/// Scans that threads take one after the other, until one fails.
class ScanQueue {
 public:
  ScanQueue(std::span<const Scan> scans, const std::stop_token& stop)
      : scans_(scans), largest_(scans.size()), stop_(stop) {}

  void work() {
    FiniteCheck check;
    for (size_t i = next(); i < scans_.size(); i = next()) {
      try {
        largest_[i] = run(scans_[i], check);
      } catch (...) {
        fail(i, std::current_exception());
      }
    }
  }
  /// The failure of the first scan that failed, those before it that were left out among them.
  /// After all threads have ended.
  void finish() const {
    if (!error_) return;
    FiniteCheck check;
    for (const Scan& scan : scans_.first(failed_)) {
      if (scan.left_out) run(scan, check);
    }
    std::rethrow_exception(error_);
  }
  /// The largest magnitude of each scan; nothing where it was left out or a device looked at it.
  const std::vector<std::optional<float>>& largest() const { return largest_; }

 private:
  std::optional<float> run(const Scan& scan, FiniteCheck& check) const {
    return check.check(*scan.tensor, scan.batch, scan.head, scan.tokens, stop_);
  }
  size_t next() {
    const std::lock_guard lock(mutex_);
    // Those before a scan that failed were begun.
    if (error_) return scans_.size();
    while (next_ < scans_.size() && scans_[next_].left_out) ++next_;
    return next_ < scans_.size() ? next_++ : next_;
  }
  void fail(size_t scan, std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    if (scan > failed_) return;
    failed_ = scan;
    error_ = std::move(error);
  }

  const std::span<const Scan> scans_;
  std::vector<std::optional<float>> largest_;  ///< each written by who took its scan
  const std::stop_token& stop_;
  std::mutex mutex_;
  size_t next_ = 0;
  size_t failed_ = std::numeric_limits<size_t>::max();
  std::exception_ptr error_;
};

/// The largest magnitudes in each task's q and k; infinity where the scans did not tell.
std::vector<TaskMagnitudes> magnitudes_of(std::span<const HeadTask> tasks,
                                          std::span<const Scan> scans,
                                          std::span<const std::optional<float>> largest) {
  using Head = std::tuple<const HeadTensor*, int64_t, int64_t>;
  constexpr double kUnknown = std::numeric_limits<double>::infinity();
  std::map<Head, double> heads;
  for (size_t i = 0; i < scans.size(); ++i) {
    double& size = heads[Head(scans[i].tensor, scans[i].batch, scans[i].head)];
    size = std::max(size, largest[i] ? double{*largest[i]} : kUnknown);
  }
  const auto found = [&](const HeadTensor& tensor, int64_t batch, int64_t head) {
    const auto at = heads.find(Head(&tensor, batch, head));
    return at == heads.end() ? kUnknown : at->second;
  };
  std::vector<TaskMagnitudes> magnitudes;
  for (const HeadTask& task : tasks) {
    const AttentionProblem& problem = *task.problem;
    magnitudes.push_back({found(problem.q(), task.batch, task.head),
                          found(problem.k(), task.batch, problem.kv_head(task.head))});
  }
  return magnitudes;
}

}  // namespace

std::vector<TaskMagnitudes> check_values(std::span<const HeadTask> tasks,
                                         const std::stop_token& stop, const ValueScan& scan) {
  if (stop.stop_requested()) throw Error(ErrorCode::interrupted, "interrupted");
  const std::vector<Scan> scans = list_scans(tasks, scan);
  int64_t numbers = 0;
  for (const Scan& one : scans) numbers += one.left_out ? 0 : one.numbers();
  const auto worthwhile = static_cast<size_t>(numbers / kNumbersOfThread);
  const auto wanted = std::min(
      {static_cast<size_t>(std::max(scan.threads, 1)), scans.size(), worthwhile, kMostThreads});
  ScanQueue queue(scans, stop);
  {
    std::vector<std::jthread> others;
    if (wanted > 1) {
      start_helpers(others, wanted - 1, [&](size_t) { return [&queue] { queue.work(); }; });
    }
    queue.work();
  }
  queue.finish();
  std::vector<TaskMagnitudes> magnitudes = magnitudes_of(tasks, scans, queue.largest());
  if (scan.backend != nullptr) check_subnormals(tasks, magnitudes, *scan.backend, stop);
  return magnitudes;
}

}  // namespace attnscope
