#pragma once

#include <condition_variable>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "io/capture/capture.h"

namespace attnscope {

/// Watches a capture that is still being written, on a thread of its own, and opens what is added
/// to it. Thread-safe; ends soon when it is destroyed.
class CaptureFollower {
 public:
  using Captures = std::vector<std::shared_ptr<const Capture>>;
  /// `known`: what was opened of `path` until now; none: nothing is there yet, and only begun() is
  /// told. `wake` is called from the thread when there is something new.
  CaptureFollower(std::filesystem::path path, FactOverrides overrides, ReadControl control,
                  Captures known, std::function<void()> wake);
  ~CaptureFollower();

  /// The captures that were added since the last call, one after the other.
  Captures take();
  /// The problem that keeps the newest calls from being opened, one line, told once; empty: none.
  std::string take_problem();
  /// True once there is something to open where nothing was, if only to see why that fails.
  bool begun() const;

 private:
  void watch(std::stop_token stop);
  std::string look();

  const std::filesystem::path path_;
  const FactOverrides overrides_;
  const ReadControl control_;
  const std::function<void()> wake_;
  Captures known_;  ///< the thread's own
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  Captures added_;
  std::string problem_;
  bool begun_ = false;
  std::jthread thread_;  ///< last: it uses the others
};

}  // namespace attnscope
