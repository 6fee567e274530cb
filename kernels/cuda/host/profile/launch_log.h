#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "core/stream/launch_profile.h"
#include "kernels/cuda/host/devices/device.h"
#include "kernels/cuda/host/profile/launch_work.h"
#include "kernels/cuda/kernel/launch.h"

namespace attnscope::cuda {

/// The times that the launches on a device took, one entry a shape. Thread-safe.
class LaunchTotals {
 public:
  explicit LaunchTotals(const Device& device) : device_(device) {}

  /// While it lives, nothing that the calling thread adds counts: maps that a device computes to be
  /// checked are nobody's concern.
  class Muted {
   public:
    Muted() { muted_ = true; }
    ~Muted() { muted_ = false; }
    Muted(const Muted&) = delete;
    Muted& operator=(const Muted&) = delete;
  };

  void add(const LaunchWork& work, const KernelLaunch& launch, double seconds);
  /// Longest first.
  std::vector<LaunchProfile> profiles() const;

 private:
  using Key = std::tuple<std::string, std::string, const void*, unsigned, unsigned, unsigned, int,
                         int64_t, int>;
  static inline thread_local bool muted_ = false;
  LaunchProfile describe(const LaunchWork& work, const KernelLaunch& launch) const;

  const Device& device_;
  mutable std::mutex mutex_;
  std::map<Key, LaunchProfile> entries_;
};

/// Times what is queued on one stream. Without totals, nothing is timed and no event is made. Used
/// by the thread that uses the stream.
class LaunchLog {
 public:
  /// `totals`, where not null, must outlive the log.
  LaunchLog(cudaStream_t stream, LaunchTotals* totals) : stream_(stream), totals_(totals) {}
  LaunchLog(const LaunchLog&) = delete;
  LaunchLog& operator=(const LaunchLog&) = delete;

  bool is_on() const { return totals_ != nullptr; }

  /// Lets queue() queue one kernel or copy; work() says what it is, and is asked only where that
  /// matters.
  template <typename Work, typename Queue>
  void time(Work work, Queue queue) {
    if (!is_on()) return queue();
    Pending& entry = begin();
    {
      const LaunchWatch watch(entry.launch);
      queue();
    }
    entry.work = work();
    end(entry);
  }
  /// Times the copying or clearing of `bytes` bytes, which queue() queues.
  template <typename Queue>
  void time_copy(const char* what, int64_t bytes, Queue queue) {
    time([&] { return LaunchWork{.kernel = what, .bytes = static_cast<double>(bytes)}; }, queue);
  }

  /// Adds what was timed to the totals. The stream has nothing queued.
  void collect();

 private:
  struct Pending {
    Event start{Event::Kind::timed};
    Event stop{Event::Kind::timed};
    LaunchWork work;
    KernelLaunch launch;
  };
  Pending& begin();
  void end(Pending& entry);

  const cudaStream_t stream_;
  LaunchTotals* const totals_;
  std::vector<std::unique_ptr<Pending>> pending_;  ///< the first used_ are in use
  size_t used_ = 0;
};

}  // namespace attnscope::cuda
