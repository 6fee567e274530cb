#include "viewer/tiles/frame_keeper.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/base/failure_text.h"

namespace attnscope {

FrameKeeper::FrameKeeper(Read read, Reserve reserve, std::function<void()> wake)
    : read_(std::move(read)), reserve_(std::move(reserve)), wake_(std::move(wake)) {
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
                       [&](const FrameRequest& request) { return !kept_.contains(request); });
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
  try {
    kept.memory =
        reserve_(static_cast<int64_t>(request.width) * request.height, "a picture of the video");
    const GreyImage image = read_(request.number);
    frame->width = image.width;
    frame->height = image.height;
    frame->image = resized(image, request.width, request.height);
  } catch (const Error& error) {
    frame->problem = one_line(error.what());
  } catch (const std::exception& error) {
    frame->problem = one_line(failure_text(error));
  }
  if (!frame->problem.empty()) kept.memory = {};
  kept.frame = std::move(frame);
  return kept;
}

void FrameKeeper::run(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    const auto next =
        std::find_if(wanted_.begin(), wanted_.end(),
                     [&](const FrameRequest& request) { return !kept_.contains(request); });
    if (next == wanted_.end()) {
      changed_.wait(lock, stop, [&] {
        return std::any_of(wanted_.begin(), wanted_.end(),
                           [&](const FrameRequest& request) { return !kept_.contains(request); });
      });
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
