#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/dtype.h"
#include "core/base/index_range.h"

namespace attnscope {

class DeviceReader;

/// Where all elements of a tensor lie in the memory of a CUDA device. Borrowed from the tensor.
struct DevicePlace {
  const DeviceReader* reader = nullptr;
  int device = 0;                    ///< CUDA's number of it in this process
  const std::byte* data = nullptr;   ///< a device address: that of the element at all zeros
  std::span<const int64_t> strides;  ///< in elements, one an axis of the shape; any sign, or 0
};

/// Rows of a tensor in the memory of a CUDA device: channel c of row r is the element at r ·
/// row_stride + c · channel_stride from `data` on. Borrowed from the tensor.
struct DeviceRows {
  const DeviceReader* reader = nullptr;
  int device = 0;
  const std::byte* data = nullptr;  ///< a device address, aligned to an element
  DType dtype = DType::f32;
  int64_t rows = 0;
  int64_t width = 0;
  int64_t row_stride = 0;
  int64_t channel_stride = 1;

  int64_t row_bytes() const { return width * dtype_bytes(dtype); }
  DeviceRows part(IndexRange range) const {
    DeviceRows rows_of = *this;
    rows_of.data += range.begin * row_stride * dtype_bytes(dtype);
    rows_of.rows = range.size();
    return rows_of;
  }
};

/// The seam to the memory of CUDA devices: what reads it for those who compute elsewhere. The CUDA
/// module has it (kernels/cuda/module.h). Thread-safe; leaves the calling thread's device as it
/// was. Lives as long as all tensors that name it.
class DeviceReader {
 public:
  virtual ~DeviceReader() = default;

  /// Waits until everything is done that was queued on the device's default stream, which producers
  /// of DLPack arrays order their own before when they are asked to. Throws Error(unavailable)
  /// where there is no such device, or something queued has failed.
  virtual void wait(int device) const = 0;

  /// Copies the rows to the host, packed. Throws Error(unavailable) where the device fails,
  /// Error(resource) where it has no memory left to do it by way of.
  virtual void read(const DeviceRows& rows, std::byte* to) const = 0;

  /// The first row that has a NaN or an infinity, or −1. They are looked at where they are. f16,
  /// bf16 or f32 only. Throws as read().
  virtual int64_t first_not_finite(const DeviceRows& rows) const = 0;
};

}  // namespace attnscope
