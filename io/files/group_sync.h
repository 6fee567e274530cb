#pragma once

#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace attnscope {

/// Makes what many small writes wrote durable together: a thread of its own syncs, so that a write
/// is durable soon after it and no writer waits for the disk. Thread-safe.
class GroupSync {
 public:
  /// `sync` makes durable what was written before the call; the thread and flush() call it, one at
  /// a time, while others write. A write is synced at the latest `within` after it, where syncs do
  /// not take longer themselves. Throws Error(resource) where no thread can be had.
  GroupSync(std::function<void()> sync, std::chrono::milliseconds within);
  GroupSync(const GroupSync&) = delete;
  GroupSync& operator=(const GroupSync&) = delete;
  /// Syncs what is not yet, without a word of errors: call flush() first to know of them.
  ~GroupSync();

  /// Something was written. Once a sync failed, this and flush() throw what it threw, and nothing
  /// is synced any more: nobody knows what is on the disk then.
  void wrote();
  /// Returns when everything that was written before the call is durable.
  void flush();

 private:
  void run();
  void sync_now(std::unique_lock<std::mutex>& lock);

  const std::function<void()> sync_;
  const std::chrono::milliseconds within_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool unsynced_ = false;  ///< something was written since the last sync began
  bool syncing_ = false;
  bool stopping_ = false;
  std::chrono::steady_clock::time_point due_;  ///< of what is unsynced
  std::exception_ptr failure_;
  std::thread thread_;  ///< last: it uses everything else
};

}  // namespace attnscope
