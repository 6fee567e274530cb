#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "core/stream/device_texels.h"
#include "kernels/cuda/host/devices/device.h"

namespace attnscope::cuda {

class TexelKeeper;

/// Device memory for the texels of one tile, whatever its size.
struct TexelBuffer {
  /// Of 256 × 256 pairs of half floats.
  static constexpr int64_t kMostTexels = int64_t{256} * 256;
  static constexpr int64_t kBytes = kMostTexels * 4;

  /// Takes over the memory.
  TexelBuffer(Device& of, void* taken) : device(of), memory(taken) {}
  ~TexelBuffer() { device.release(memory, kBytes); }
  TexelBuffer(const TexelBuffer&) = delete;
  TexelBuffer& operator=(const TexelBuffer&) = delete;

  Device& device;
  void* const memory;
  Event copied;  ///< the last copy from it
};

/// DeviceTexels of a device. Thread-safe.
class KeptTexels : public DeviceTexels {
 public:
  KeptTexels(TexelKeeper& keeper, int64_t rows, int64_t cols, std::unique_ptr<TexelBuffer> buffer)
      : rows_(rows), cols_(cols), keeper_(keeper), buffer_(std::move(buffer)) {}
  ~KeptTexels() override;

  void release() override;
  /// Calls action(buffer) unless it was given back; nobody takes the buffer away meanwhile, and
  /// `action` must not allocate device memory. Whether it was called.
  template <typename Action>
  bool use(Action action) {
    const std::lock_guard lock(mutex_);
    if (buffer_ == nullptr) return false;
    action(*buffer_);
    return true;
  }
  bool belongs_to(const TexelKeeper& keeper) const { return &keeper == &keeper_; }
  int64_t rows() const { return rows_; }
  int64_t cols() const { return cols_; }

 private:
  friend TexelKeeper;
  std::unique_ptr<TexelBuffer> take();

  const int64_t rows_, cols_;
  TexelKeeper& keeper_;
  std::mutex mutex_;
  std::unique_ptr<TexelBuffer> buffer_;
};

/// The texels that wait on a device for a window to show them. Buffers are used again, because
/// freeing device memory waits for all that the device does. Whoever else runs out of memory gets
/// theirs. Thread-safe.
class TexelKeeper {
 public:
  /// Tiles at most; the one that has waited longest gives way to a new one.
  static constexpr int kMostTiles = 128;
  /// Buffers at most that nobody uses and that are kept nevertheless.
  static constexpr int kMostSpare = 16;

  explicit TexelKeeper(Device& device);
  TexelKeeper(const TexelKeeper&) = delete;
  TexelKeeper& operator=(const TexelKeeper&) = delete;

  /// Tells the keeper if a window takes texels; when none does, what waits is dropped.
  void set_wanted(bool wanted);
  /// Null where nobody wants texels, they are too many for a tile, or memory is short.
  std::shared_ptr<KeptTexels> make(int64_t rows, int64_t cols);
  /// Drops all that waits; whether that gave any memory back.
  bool drop();

 private:
  friend KeptTexels;
  std::unique_ptr<TexelBuffer> find_buffer();
  /// The texels have no buffer any more; where they had one, it was this.
  void give_back(KeptTexels& texels, std::unique_ptr<TexelBuffer> buffer);

  Device& device_;
  std::atomic<bool> wanted_{false};
  std::mutex mutex_;
  std::vector<std::unique_ptr<TexelBuffer>> spare_;
  std::vector<KeptTexels*> waiting_;  ///< the oldest first
};

}  // namespace attnscope::cuda
