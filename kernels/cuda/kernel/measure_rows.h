#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace attnscope::cuda {

/// The squared lengths of rows as a tensor of 16-bit floats has them. Device pointers; `source` is
/// aligned to 2 bytes. A length depends on its row alone: added in float32, in a fixed order. It is
/// not finite where the row is not, or where float32 does not hold its square.
struct MeasureRowsArgs {
  const void* source = nullptr;  ///< [rows, channels], packed
  int rows = 0;
  int channels = 0;
  bool f16 = false;  ///< else bfloat16
  /// Where not null, raised to the bits of the largest squared length. These order as the lengths
  /// do, infinity above all numbers and NaN above that. Begins as 0.
  int32_t* longest = nullptr;
  /// Where not null, [out_rows]: 1 where a row's squared length is at most `most`, which is finite,
  /// and of those from `rows` on, which are zeros; else 0.
  int32_t* held = nullptr;
  int out_rows = 0;
  float most = 0;
};

cudaError_t launch_measure_rows(const MeasureRowsArgs& args, cudaStream_t stream);

}  // namespace attnscope::cuda
