#include "io/files/lazy_descriptor.h"

#include <sys/resource.h>

#include <algorithm>
#include <vector>

namespace attnscope {
namespace {

constexpr size_t kMostOpen = 128;

/// Leaves most of what the process may have to others: outputs, libraries, children.
size_t most_open() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kMostOpen;
  return std::clamp<size_t>(limit.rlim_cur / 4, 1, kMostOpen);
}

}  // namespace

/// Those that are open, in a ring: who is to be admitted goes round it and closes the first one
/// that nobody used since the last round. A lock of a LazyDescriptor may be taken while the ring's
/// is held, never the other way about.
class OpenDescriptors {
 public:
  /// Never destroyed: descriptors of static objects may end after it.
  static OpenDescriptors& instance() {
    static auto* const open = new OpenDescriptors;
    return *open;
  }

  void admit(const LazyDescriptor& fresh) {
    const std::lock_guard lock(mutex_);
    if (std::find(ring_.begin(), ring_.end(), &fresh) != ring_.end()) return;
    const size_t most = most_open();
    while (ring_.size() >= most) close_one();
    ring_.push_back(&fresh);
  }

  void remove(const LazyDescriptor& gone) {
    const std::lock_guard lock(mutex_);
    std::erase(ring_, &gone);
  }

 private:
  void close_one() {
    while (true) {
      if (hand_ >= ring_.size()) hand_ = 0;
      const LazyDescriptor& candidate = *ring_[hand_];
      if (candidate.used_.exchange(false)) {
        ++hand_;
        continue;
      }
      {
        const std::lock_guard lock(candidate.mutex_);
        candidate.descriptor_.reset();
      }
      ring_.erase(ring_.begin() + static_cast<std::ptrdiff_t>(hand_));
      return;
    }
  }

  std::mutex mutex_;
  std::vector<const LazyDescriptor*> ring_;
  size_t hand_ = 0;
};

LazyDescriptor::LazyDescriptor(Descriptor first, std::function<Descriptor()> open)
    : open_(std::move(open)), descriptor_(std::make_shared<const Descriptor>(std::move(first))) {
  OpenDescriptors::instance().admit(*this);
}

LazyDescriptor::~LazyDescriptor() { OpenDescriptors::instance().remove(*this); }

std::shared_ptr<const Descriptor> LazyDescriptor::get() const {
  used_.store(true, std::memory_order_relaxed);
  std::shared_ptr<const Descriptor> descriptor;
  {
    const std::lock_guard lock(mutex_);
    if (descriptor_) return descriptor_;
    descriptor_ = std::make_shared<const Descriptor>(open_());
    descriptor = descriptor_;
  }
  OpenDescriptors::instance().admit(*this);
  return descriptor;
}

std::shared_ptr<const Descriptor> LazyDescriptor::get_if_open() const {
  const std::lock_guard lock(mutex_);
  return descriptor_;
}

}  // namespace attnscope
