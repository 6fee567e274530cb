#include "kernels/cuda/host/tensors/key_memory.h"

#include <utility>

namespace attnscope::cuda {

KeyMemory::KeyMemory(Device& device) : device_(device) {
  device.add_reclaim([this] { return drop(); });
}

KeyMemory::Held KeyMemory::take(int64_t bytes) {
  Held held(nullptr, GiveBack{this});
  {
    const std::lock_guard lock(mutex_);
    // The smallest that fits: others leave the larger ones to who needs them.
    auto best = spare_.end();
    for (auto at = spare_.begin(); at != spare_.end(); ++at) {
      const int64_t size = (*at)->bytes();
      const bool fits = size >= bytes && size / 2 < bytes;
      if (fits && (best == spare_.end() || size < (*best)->bytes())) best = at;
    }
    if (best != spare_.end()) {
      held.reset(best->release());
      spare_.erase(best);
      return held;
    }
  }
  // Not under the lock: where memory is short, drop() is called.
  auto made = std::make_unique<DeviceBuffer>(device_);
  made->get<std::byte>(bytes);
  held.reset(made.release());
  return held;
}

void KeyMemory::give_back(std::unique_ptr<DeviceBuffer> buffer) {
  std::unique_ptr<DeviceBuffer> oldest;
  const std::lock_guard lock(mutex_);
  if (spare_.size() == kMostSpare) {
    oldest = std::move(spare_.front());
    spare_.erase(spare_.begin());
  }
  spare_.push_back(std::move(buffer));
}

bool KeyMemory::drop() {
  std::vector<std::unique_ptr<DeviceBuffer>> dropped;
  const std::lock_guard lock(mutex_);
  dropped.swap(spare_);
  return !dropped.empty();
}

}  // namespace attnscope::cuda
