#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "viewer/tiles/jobs/worker_scratch.h"
#include "viewer/view/maps/video_frame.h"

namespace attnscope {

/// Reads pictures of the video on a thread of its own, in the sizes that are wanted; what is wanted
/// replaces what was wanted before. Those that were wanted last and before that stay. Thread-safe.
class FrameKeeper {
 public:
  /// Reads a picture as it is stored; throws Error.
  using Read = std::function<GreyImage(int64_t number)>;

  /// `wake` is called from the thread whenever a picture has come.
  FrameKeeper(Read read, Reserve reserve, Taken taken, std::function<void()> wake);
  ~FrameKeeper();
  FrameKeeper(const FrameKeeper&) = delete;
  FrameKeeper& operator=(const FrameKeeper&) = delete;

  void want(std::vector<FrameRequest> frames);
  /// Null until it has come. One that cannot be read has a problem in place of pixels; one that
  /// found no memory is read again once less is taken.
  std::shared_ptr<const VideoFrame> find(const FrameRequest& request) const;
  /// Pictures that are wanted and not there.
  int64_t missing() const;
  int64_t bytes() const;

 private:
  struct Kept {
    std::shared_ptr<const VideoFrame> frame;
    MemoryReservation memory;
    std::optional<int64_t> taken = {};  ///< when it found no memory
  };
  bool is_missing(const FrameRequest& request) const;
  void run(const std::stop_token& stop);
  void wait(std::unique_lock<std::mutex>& lock, const std::stop_token& stop);
  Kept read(const FrameRequest& request) const;

  const Read read_;
  const Reserve reserve_;
  const Taken taken_;
  const std::function<void()> wake_;
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::vector<FrameRequest> wanted_, before_;
  std::map<FrameRequest, Kept> kept_;
  std::jthread thread_;  ///< last: it uses the others
};

}  // namespace attnscope
