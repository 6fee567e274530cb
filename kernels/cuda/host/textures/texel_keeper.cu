#include "kernels/cuda/host/textures/texel_keeper.h"

namespace attnscope::cuda {

// A keeper's mutex is taken before that of its texels, never the other way round.

KeptTexels::~KeptTexels() { release(); }

std::unique_ptr<TexelBuffer> KeptTexels::take() {
  const std::lock_guard lock(mutex_);
  return std::move(buffer_);
}

void KeptTexels::release() { keeper_.give_back(*this, take()); }

TexelKeeper::TexelKeeper(Device& device) : device_(device) {
  device.add_reclaim([this] { return drop(); });
}

void TexelKeeper::set_wanted(bool wanted) {
  wanted_ = wanted;
  if (!wanted) drop();
}

std::unique_ptr<TexelBuffer> TexelKeeper::find_buffer() {
  std::unique_ptr<TexelBuffer> spare;
  // Freed, not used again: somebody may be filling it still.
  std::unique_ptr<TexelBuffer> oldest;
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() >= kMostTiles) {
      oldest = waiting_.front()->take();
      waiting_.erase(waiting_.begin());
    }
    if (!spare_.empty()) {
      spare = std::move(spare_.back());
      spare_.pop_back();
    }
  }
  if (spare != nullptr) {
    device_.make_current();
    spare->copied.wait();
    return spare;
  }
  // Texels are what is given back for others: they take nothing away from anybody.
  void* const memory = device_.try_allocate(TexelBuffer::kBytes);
  if (memory == nullptr) return nullptr;
  try {
    return std::make_unique<TexelBuffer>(device_, memory);
  } catch (const OutOfDeviceMemory&) {
    device_.release(memory, TexelBuffer::kBytes);
    return nullptr;
  }
}

std::shared_ptr<KeptTexels> TexelKeeper::make(int64_t rows, int64_t cols) {
  if (!wanted_ || rows * cols > TexelBuffer::kMostTexels) return nullptr;
  std::unique_ptr<TexelBuffer> buffer = find_buffer();
  if (buffer == nullptr) return nullptr;
  auto texels = std::make_shared<KeptTexels>(*this, rows, cols, std::move(buffer));
  const std::lock_guard lock(mutex_);
  waiting_.push_back(texels.get());
  return texels;
}

bool TexelKeeper::drop() {
  std::vector<std::unique_ptr<TexelBuffer>> dropped;
  {
    const std::lock_guard lock(mutex_);
    dropped = std::move(spare_);
    spare_.clear();
    for (KeptTexels* texels : waiting_) {
      if (auto buffer = texels->take()) dropped.push_back(std::move(buffer));
    }
    waiting_.clear();
  }
  return !dropped.empty();
}

void TexelKeeper::give_back(KeptTexels& texels, std::unique_ptr<TexelBuffer> buffer) {
  const std::lock_guard lock(mutex_);
  std::erase(waiting_, &texels);
  if (buffer != nullptr && wanted_ && static_cast<int>(spare_.size()) < kMostSpare) {
    spare_.push_back(std::move(buffer));
  }
}

}  // namespace attnscope::cuda
