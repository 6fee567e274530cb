#pragma once

#include <cstdint>
#include <mutex>

#include "kernels/cuda/host/devices/device.h"
#include "kernels/cuda/host/profile/launch_log.h"
#include "kernels/cuda/host/tensors/head_format.h"
#include "kernels/cuda/host/tensors/key_memory.h"

namespace attnscope::cuda {

/// Copies keys to a device, through two page-locked buffers of its own, and brings them to their
/// places there. Thread-safe: one head at a time.
class KeyUploader {
 public:
  static constexpr int64_t kBufferBytes = int64_t{1} << 20;
  static constexpr int64_t kPinnedBytes = 2 * kBufferBytes;

  /// `totals`, where not null, get what the copies take, and must outlive it.
  KeyUploader(Device& device, KeyMemory& memory, LaunchTotals* totals);

  struct Uploaded {
    int exponent = 0;  ///< what features were divided by, as a power of 2
    /// |k|² of the longest key, where kernels fetch keys themselves (format.tiled); not finite
    /// where it is no number of float32.
    float longest = 0;
  };
  /// The rows of one head as `format` says, by way of memory for a piece of them, up to
  /// `padded_rows`, those beyond the last key 0. Where they lie in a device's memory they come from
  /// there (fetched_rows.h). Done when it returns, also by an exception: the tensor's memory is not
  /// read any more.
  Uploaded upload(const HeadFormat& format, const HeadTensor& k, int64_t batch, int64_t head,
                  int64_t padded_rows, std::byte* to);

  /// Host memory that upload() takes beside the page-locked one.
  static int64_t transient_bytes(const HeadFormat& format);

 private:
  struct Source;
  void bring(const HeadFormat& format, Source& source, IndexRange keys, std::byte* to);
  KeyMemory::Held source_memory(const HeadFormat& format, int64_t& rows);
  void copy(std::byte* to, const std::byte* pinned, int64_t bytes);
  void clear(std::byte* memory, int64_t bytes);
  int exponent_of(const HeadFormat& format, const HeadTensor& k, int64_t batch, int64_t head);

  Device& device_;
  KeyMemory& memory_;
  std::mutex mutex_;
  const Stream stream_;
  LaunchLog log_;
  PinnedMemory buffers_[2];
  Event copied_[2];
  int turn_ = 0;  ///< whose buffer and event are next
};

}  // namespace attnscope::cuda
