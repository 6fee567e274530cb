// Rows of tensors that lie in device memory as whoever made them laid them out.
#include "kernels/cuda/kernel/tensor_rows.h"

#include <device_intrinsics.h>

#include <climits>

#include "kernels/cuda/kernel/launch.h"

namespace attnscope::cuda {
namespace {

constexpr int kRowThreads = 256;
constexpr int kWarpLanes = 32;

/// One row a warp, whose lanes take neighbouring channels.
__device__ int row_of_warp() {
  return static_cast<int>((blockIdx.x * blockDim.x + threadIdx.x) / kWarpLanes);
}
__device__ int lane_of_row() { return static_cast<int>(threadIdx.x) % kWarpLanes; }

template <typename Bits>
__global__ void gather_rows(GatherRowsArgs args) {
  const TensorRows& source = args.source;
  const int row = row_of_warp();
  if (row >= source.rows) return;
  const int64_t place = args.places == nullptr ? row : args.places[row];
  const auto* const from = static_cast<const Bits*>(source.data) + place * source.row_stride;
  auto* const to = static_cast<Bits*>(args.out) + static_cast<int64_t>(row) * source.channels;
  for (int channel = lane_of_row(); channel < source.channels; channel += kWarpLanes) {
    to[channel] = from[channel * source.channel_stride];
  }
}

template <typename Bits>
__global__ void find_not_finite(FindRowArgs args) {
  const TensorRows& source = args.source;
  const int row = row_of_warp();
  if (row >= source.rows) return;
  const auto* const from =
      static_cast<const Bits*>(source.data) + static_cast<int64_t>(row) * source.row_stride;
  bool bad = false;
  for (int channel = lane_of_row(); channel < source.channels; channel += kWarpLanes) {
    bad |= (from[channel * source.channel_stride] & args.exponent) == args.exponent;
  }
  if (bad) max_atomic(args.found, INT_MAX - row);
}

/// Threads are counted in 32 bits.
bool fits(const TensorRows& source) {
  return source.rows <= (INT_MAX - kRowThreads) / kWarpLanes && source.channels >= 0;
}

LaunchShape shape_of(const TensorRows& source) {
  constexpr int kBlockRows = kRowThreads / kWarpLanes;
  const int blocks = (source.rows + kBlockRows - 1) / kBlockRows;
  return {dim3(static_cast<unsigned>(blocks)), kRowThreads, 0};
}

}  // namespace

cudaError_t launch_gather_rows(const GatherRowsArgs& args, cudaStream_t stream) {
  if (!fits(args.source)) return cudaErrorInvalidValue;
  const LaunchShape shape = shape_of(args.source);
  switch (args.source.element_bytes) {
    case 1:
      return launch(gather_rows<unsigned char>, shape, stream, args);
    case 2:
      return launch(gather_rows<unsigned short>, shape, stream, args);
    case 4:
      return launch(gather_rows<unsigned>, shape, stream, args);
    case 8:
      return launch(gather_rows<unsigned long long>, shape, stream, args);
    default:
      return cudaErrorInvalidValue;
  }
}

cudaError_t launch_find_not_finite(const FindRowArgs& args, cudaStream_t stream) {
  if (!fits(args.source)) return cudaErrorInvalidValue;
  const LaunchShape shape = shape_of(args.source);
  switch (args.source.element_bytes) {
    case 2:
      return launch(find_not_finite<unsigned short>, shape, stream, args);
    case 4:
      return launch(find_not_finite<unsigned>, shape, stream, args);
    default:
      return cudaErrorInvalidValue;
  }
}

}  // namespace attnscope::cuda
