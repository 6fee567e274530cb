#pragma once

#include <cstdint>
#include <mutex>

#include "kernels/cuda/host/device.h"
#include "kernels/cuda/host/head_format.h"
#include "kernels/cuda/host/launch_log.h"

namespace attnscope::cuda {

/// Copies keys to a device through two page-locked buffers of its own. Thread-safe: one head at a
/// time.
class KeyUploader {
 public:
  static constexpr int64_t kBufferBytes = int64_t{1} << 20;
  static constexpr int64_t kPinnedBytes = 2 * kBufferBytes;

  /// `totals`, where not null, get what the copies take, and must outlive it.
  KeyUploader(Device& device, LaunchTotals* totals);

  /// The rows of one head as `format` says, up to `padded_rows`, those beyond the last key 0.
  /// Returns what features were divided by, as a power of 2. Done when it returns.
  int upload(const HeadFormat& format, const HeadTensor& k, int64_t batch, int64_t head,
             int64_t padded_rows, std::byte* to);

  /// Host memory that upload() takes beside the page-locked one.
  static int64_t transient_bytes(const HeadFormat& format);

 private:
  int exponent_of(const HeadFormat& format, const HeadTensor& k, int64_t batch, int64_t head);

  Device& device_;
  std::mutex mutex_;
  const Stream stream_;
  LaunchLog log_;
  PinnedMemory buffers_[2];
  Event copied_[2];
};

}  // namespace attnscope::cuda
