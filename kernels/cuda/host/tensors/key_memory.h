#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "kernels/cuda/host/devices/device.h"

namespace attnscope::cuda {

/// Device memory for the keys of heads, which come and go. What a head gives back is kept for the
/// next one, because freeing device memory waits for all that the device does; whoever else runs
/// out of memory gets it. Thread-safe; outlives what it hands out.
class KeyMemory {
 public:
  /// Buffers at most that nobody uses and that are kept nevertheless.
  static constexpr size_t kMostSpare = 4;

  explicit KeyMemory(Device& device);
  KeyMemory(const KeyMemory&) = delete;
  KeyMemory& operator=(const KeyMemory&) = delete;

  struct GiveBack {
    KeyMemory* to = nullptr;
    void operator()(DeviceBuffer* buffer) const {
      to->give_back(std::unique_ptr<DeviceBuffer>(buffer));
    }
  };
  using Held = std::unique_ptr<DeviceBuffer, GiveBack>;

  /// A buffer of at least so many bytes, less than twice as many where it was used before. Throws
  /// OutOfDeviceMemory. Buffers are written on one stream alone (KeyUploader's), so that what is
  /// left in the queue when one is given back is done before its next owner's.
  Held take(int64_t bytes);
  /// Frees what nobody uses; whether there was any.
  bool drop();

 private:
  void give_back(std::unique_ptr<DeviceBuffer> buffer);

  Device& device_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<DeviceBuffer>> spare_;  ///< the oldest first
};

}  // namespace attnscope::cuda
