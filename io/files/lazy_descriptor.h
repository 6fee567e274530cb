#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>

#include "io/files/descriptor.h"

namespace attnscope {

/// A file that is open while it is used and may be closed in between: a capture has thousands, and
/// a process may have few open. Of all of the process at most 128 stay open, a quarter of what
/// `ulimit -n` allows if that is less, beside those that are in use at this moment; those not used
/// for long are closed first. Thread-safe.
class LazyDescriptor {
 public:
  /// `open` opens the file, again and again, and throws where it cannot; it may be called in any
  /// thread, by one at a time. `first` is the file as it is open already.
  LazyDescriptor(Descriptor first, std::function<Descriptor()> open);
  ~LazyDescriptor();
  LazyDescriptor(const LazyDescriptor&) = delete;
  LazyDescriptor& operator=(const LazyDescriptor&) = delete;

  /// The open file, which stays open as long as the result is held. Throws what `open` throws.
  std::shared_ptr<const Descriptor> get() const;
  /// The file where it is open now; else null. Opens nothing.
  std::shared_ptr<const Descriptor> get_if_open() const;

 private:
  friend class OpenDescriptors;

  const std::function<Descriptor()> open_;
  mutable std::mutex mutex_;  ///< of descriptor_
  mutable std::shared_ptr<const Descriptor> descriptor_;
  mutable std::atomic<bool> used_{true};  ///< since the last round of what closes them
};

}  // namespace attnscope
