#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>

#include "core/stream/streaming_engine.h"

namespace attnscope {

/// Counts finished tiles and reports them, seldom enough to cost nothing.
class ProgressReport {
 public:
  ProgressReport(const std::function<void(const StreamProgress&)>& report, int64_t total)
      : report_(report), total_(total) {}

  void add_tile() {
    done_.fetch_add(1);
    if (!report_) return;
    // Whoever does not get the lock leaves the report to the one who has it.
    const std::unique_lock lock(mutex_, std::try_to_lock);
    const auto now = Clock::now();
    if (!lock.owns_lock() || now - last_ < kInterval) return;
    last_ = now;
    report_({done_.load(), total_});
  }

  bool complete() const { return done_.load() == total_; }
  void finish() {
    if (report_) report_({done_.load(), total_});
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kInterval{50};
  const std::function<void(const StreamProgress&)>& report_;
  const int64_t total_;
  std::atomic<int64_t> done_{0};
  std::mutex mutex_;
  Clock::time_point last_ = Clock::now();
};

}  // namespace attnscope
