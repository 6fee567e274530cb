#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace attnscope {

/// The time by which an ExportJournal commits, and the way its threads wait. Tests bring one of
/// their own: they set its time and see who waits.
class JournalClock {
 public:
  using Time = std::chrono::steady_clock::time_point;
  JournalClock() = default;
  JournalClock(const JournalClock&) = delete;
  JournalClock& operator=(const JournalClock&) = delete;
  virtual ~JournalClock() = default;

  /// Called with the journal's lock held, as the waits are. Thread-safe.
  virtual Time now() const { return std::chrono::steady_clock::now(); }
  /// Gives `lock` up until `woken` is notified, and takes it again; may return sooner. Thread-safe.
  virtual void wait(std::condition_variable& woken, std::unique_lock<std::mutex>& lock) {
    woken.wait(lock);
  }
  /// The same, and returns when now() has come to `deadline`.
  virtual void wait_until(std::condition_variable& woken, std::unique_lock<std::mutex>& lock,
                          Time deadline) {
    woken.wait_until(lock, deadline);
  }
};

}  // namespace attnscope
