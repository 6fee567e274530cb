// How long the rows of Q and K are.
#include "kernels/cuda/kernel/measure_rows.h"

#include <device_intrinsics.h>

#include <climits>

#include "kernels/cuda/kernel/launch.h"

namespace attnscope::cuda {
namespace {

constexpr int kMeasureThreads = 256;
constexpr int kRowLanes = 32;

/// The squared length of a row, in all lanes of the warp.
__device__ float squared_length(const MeasureRowsArgs& args, int row) {
  const auto* const bits =
      static_cast<const unsigned short*>(args.source) + static_cast<int64_t>(row) * args.channels;
  float sum = 0;
  for (int channel = static_cast<int>(threadIdx.x) % kRowLanes; channel < args.channels;
       channel += kRowLanes) {
    const float value = args.f16 ? from_half_bits(bits[channel]) : from_bfloat_bits(bits[channel]);
    sum = __builtin_fmaf(value, value, sum);
  }
  for (int bit = 1; bit < kRowLanes; bit *= 2) sum += shuffle_xor(sum, bit);
  return sum;
}

/// One row a warp.
__global__ void measure_rows(const __grid_constant__ MeasureRowsArgs args) {
  const int row = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x) / kRowLanes;
  if (row >= args.out_rows) return;
  const float length = row < args.rows ? squared_length(args, row) : 0.0f;
  if (threadIdx.x % kRowLanes != 0) return;
  if (args.held != nullptr) args.held[row] = length <= args.most ? 1 : 0;
  // A NaN's sign would put it below all.
  if (args.longest != nullptr) {
    max_atomic(args.longest, __builtin_bit_cast(int32_t, length) & INT_MAX);
  }
}

}  // namespace

cudaError_t launch_measure_rows(const MeasureRowsArgs& args, cudaStream_t stream) {
  const int64_t threads = int64_t{args.out_rows} * kRowLanes;
  // Threads are counted in 32 bits.
  if (threads > INT_MAX - kMeasureThreads) return cudaErrorInvalidValue;
  const LaunchShape shape{
      dim3(static_cast<unsigned>((threads + kMeasureThreads - 1) / kMeasureThreads)),
      kMeasureThreads, 0};
  return launch(measure_rows, shape, stream, args);
}

}  // namespace attnscope::cuda
