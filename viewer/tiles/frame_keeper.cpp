#include "viewer/tiles/frame_keeper.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/base/failure_text.h"

namespace attnscope {

FrameKeeper::FrameKeeper(Read read, Reserve reserve, Taken taken, std::function<void()> wake)
    : read_(std::move(read)),
      reserve_(std::move(reserve)),
      taken_(std::move(taken)),
      wake_(std::move(wake)) {
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

FrameKeeper::~FrameKeeper() {
  thread_.request_stop();
  thread_.join();
}

void FrameKeeper::want(std::vector<FrameRequest> frames) {
  const std::lock_guard lock(mutex_);
  if (frames == wanted_) return;
  before_ = std::exchange(wanted_, std::move(frames));
  const auto named = [](const std::vector<FrameRequest>& list, const FrameRequest& request) {
    return std::find(list.begin(), list.end(), request) != list.end();
  };
  std::erase_if(kept_, [&](const auto& kept) {
    return !named(wanted_, kept.first) && !named(before_, kept.first);
  });
  changed_.notify_one();
}

std::shared_ptr<const VideoFrame> FrameKeeper::find(const FrameRequest& request) const {
  const std::lock_guard lock(mutex_);
  const auto found = kept_.find(request);
  return found == kept_.end() ? nullptr : found->second.frame;
}

int64_t FrameKeeper::missing() const {
  const std::lock_guard lock(mutex_);
  return std::count_if(wanted_.begin(), wanted_.end(),
                       [&](const FrameRequest& request) { return is_missing(request); });
}

bool FrameKeeper::is_missing(const FrameRequest& request) const {
  const auto found = kept_.find(request);
  if (found == kept_.end()) return true;
  return found->second.taken && taken_() < *found->second.taken;
}

int64_t FrameKeeper::bytes() const {
  const std::lock_guard lock(mutex_);
  int64_t bytes = 0;
  for (const auto& [request, kept] : kept_) bytes += kept.memory.bytes();
  return bytes;
}

FrameKeeper::Kept FrameKeeper::read(const FrameRequest& request) const {
  auto frame = std::make_shared<VideoFrame>();
  frame->request = request;
  Kept kept;
  bool found_room = false;
  const int64_t before = taken_();
  try {
    kept.memory =
        reserve_(static_cast<int64_t>(request.width) * request.height, "a picture of the video");
    found_room = true;
    const GreyImage image = read_(request.number);
    frame->width = image.width;
    frame->height = image.height;
    frame->image = resized(image, request.width, request.height);
  } catch (const Error& error) {
    frame->problem = one_line(error.what());
  } catch (const std::exception& error) {
    frame->problem = one_line(failure_text(error));
  }
  if (!found_room) kept.taken = std::max(before, taken_());
  if (!frame->problem.empty()) kept.memory = {};
  kept.frame = std::move(frame);
  return kept;
}

/// Until a picture is wanted that is not there, or memory may have become free.
void FrameKeeper::wait(std::unique_lock<std::mutex>& lock, const std::stop_token& stop) {
  const auto wanted = [this] {
    return std::any_of(wanted_.begin(), wanted_.end(),
                       [&](const FrameRequest& request) { return is_missing(request); });
  };
  const bool lacks_memory =
      std::any_of(kept_.begin(), kept_.end(), [](const auto& kept) { return kept.second.taken; });
  if (lacks_memory) {
    changed_.wait_for(lock, stop, kMemoryWait, wanted);
  } else {
    changed_.wait(lock, stop, wanted);
  }
}

void FrameKeeper::run(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    const auto next =
        std::find_if(wanted_.begin(), wanted_.end(),
                     [&](const FrameRequest& request) { return is_missing(request); });
    if (next == wanted_.end()) {
      wait(lock, stop);
      continue;
    }
    const FrameRequest request = *next;
    lock.unlock();
    Kept kept = read(request);
    lock.lock();
    // Nobody wants it any more: it would stay for ever.
    if (std::find(wanted_.begin(), wanted_.end(), request) == wanted_.end()) continue;
    kept_.insert_or_assign(request, std::move(kept));
    lock.unlock();
    wake_();
    lock.lock();
  }
}

}  // namespace attnscope
