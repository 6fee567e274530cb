#include "core/stream/value_check.h"

#include <algorithm>
#include <exception>
#include <functional>
#include <limits>
#include <mutex>
#include <set>
#include <thread>
#include <tuple>
#include <vector>

#include "core/base/error.h"
#include "core/base/start_thread.h"

namespace attnscope {
namespace {

constexpr size_t kMostThreads = 8;
/// Numbers of q, k and v that a thread more is started for.
constexpr int64_t kNumbersOfThread = int64_t{1} << 18;

/// One head of one tensor.
struct Scan {
  std::function<void()> run;
  int64_t numbers = 0;
};

std::vector<Scan> list_scans(std::span<const HeadTask> tasks, const std::stop_token& stop,
                             bool with_values) {
  // Query heads share key heads under grouped-query attention.
  std::set<std::tuple<const AttentionProblem*, int64_t, int64_t>> seen;
  std::vector<Scan> scans;
  for (const HeadTask& task : tasks) {
    const AttentionProblem& problem = *task.problem;
    const int64_t b = task.batch, h = task.head, kv_head = problem.kv_head(task.head);
    const auto numbers = [](const HeadTensor& tensor) { return tensor.tokens() * tensor.width(); };
    scans.push_back({[&problem, b, h, &stop] { problem.check_queries_finite(b, h, stop); },
                     numbers(problem.q())});
    if (!seen.emplace(&problem, b, kv_head).second) continue;
    scans.push_back({[&problem, b, kv_head, &stop] { problem.check_keys_finite(b, kv_head, stop); },
                     numbers(problem.k())});
    if (!with_values) continue;
    scans.push_back(
        {[&problem, b, kv_head, &stop] { problem.check_values_finite(b, kv_head, stop); },
         numbers(problem.v())});
  }
  return scans;
}

/// Scans that threads take one after the other, until one fails.
class ScanQueue {
 public:
  explicit ScanQueue(std::span<const Scan> scans) : scans_(scans) {}

  void work() {
    for (size_t i = next(); i < scans_.size(); i = next()) {
      try {
        scans_[i].run();
      } catch (...) {
        fail(i, std::current_exception());
      }
    }
  }
  /// The failure of the first scan that failed. After all threads have ended.
  void finish() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  size_t next() {
    const std::lock_guard lock(mutex_);
    // Those before a scan that failed were begun.
    return error_ ? scans_.size() : next_++;
  }
  void fail(size_t scan, std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    if (scan > failed_) return;
    failed_ = scan;
    error_ = std::move(error);
  }

  const std::span<const Scan> scans_;
  std::mutex mutex_;
  size_t next_ = 0;
  size_t failed_ = std::numeric_limits<size_t>::max();
  std::exception_ptr error_;
};

}  // namespace

void check_values(std::span<const HeadTask> tasks, const std::stop_token& stop,
                  const ValueScan& scan) {
  if (stop.stop_requested()) throw Error(ErrorCode::interrupted, "interrupted");
  const std::vector<Scan> scans = list_scans(tasks, stop, scan.with_values);
  int64_t numbers = 0;
  for (const Scan& one : scans) numbers += one.numbers;
  const auto worthwhile = static_cast<size_t>(numbers / kNumbersOfThread);
  const auto wanted = std::min(
      {static_cast<size_t>(std::max(scan.threads, 1)), scans.size(), worthwhile, kMostThreads});
  ScanQueue queue(scans);
  {
    std::vector<std::jthread> others;
    if (wanted > 1) {
      start_helpers(others, wanted - 1, [&](size_t) { return [&queue] { queue.work(); }; });
    }
    queue.work();
  }
  queue.finish();
}

}  // namespace attnscope
