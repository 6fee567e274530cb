#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace attnscope::cuda {

/// Rows of a tensor as they lie in device memory: channel c of row r is the element at r ·
/// row_stride + c · channel_stride, strides of any sign. Device pointer, aligned to an element.
struct TensorRows {
  const void* data = nullptr;
  int rows = 0;  ///< below INT_MAX / 32
  int channels = 0;
  int64_t row_stride = 0;
  int64_t channel_stride = 1;
  int element_bytes = 2;  ///< 1, 2, 4 or 8
};

/// Brings rows to `out`, packed, bit for bit.
struct GatherRowsArgs {
  TensorRows source;
  /// [source.rows] device pointer: which row each is, from source.data on; null: one after the
  /// other.
  const int64_t* places = nullptr;
  void* out = nullptr;  ///< [source.rows, source.channels]
};
cudaError_t launch_gather_rows(const GatherRowsArgs& args, cudaStream_t stream);

/// Raises `found`, which begins as 0, to INT_MAX − r of the first row r that has an element whose
/// bits of `exponent` are all set: a NaN or an infinity. Elements of 2 or 4 bytes.
struct FindRowArgs {
  TensorRows source;
  uint32_t exponent = 0;
  int32_t* found = nullptr;
};
cudaError_t launch_find_not_finite(const FindRowArgs& args, cudaStream_t stream);

}  // namespace attnscope::cuda
