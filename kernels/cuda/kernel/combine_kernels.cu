// Puts the results of thread blocks for pieces of rows together, in order.
#include <device_intrinsics.h>

#include "kernels/cuda/kernel/kernel_set.h"
#include "kernels/cuda/kernel/launch.h"

namespace attnscope::cuda {
namespace {

constexpr int kCombineThreads = 128;
constexpr int kWarpLanes = 32;

__device__ int row_of_thread() { return static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); }

/// 2^n for whole n ≤ 0; 0 below what double holds, and for NaN.
__device__ double exact_power(float n) {
  constexpr int kBias = 1023;
  constexpr int kFractionBits = 52;
  if (!(n >= -1000.0f)) return 0;
  return __builtin_bit_cast(double, static_cast<int64_t>(static_cast<int>(n) + kBias)
                                        << kFractionBits);
}

/// Combines what the lanes of a warp hold, each with the one whose number differs in one bit: all
/// of them get the same.
template <typename T, typename Combine>
__device__ T across_warp(T value, Combine combine) {
  for (int bit = 1; bit < kWarpLanes; bit *= 2) value = combine(value, shuffle_xor(value, bit));
  return value;
}

/// One row a warp, whose lanes share its segments out: all by the largest of their references.
/// Which lane adds what, and in which order, depends on the number of segments alone.
__global__ void combine_rows(const __grid_constant__ CombineRowsArgs args) {
  const int row = row_of_thread() / kWarpLanes;
  const int lane = static_cast<int>(threadIdx.x) % kWarpLanes;
  if (row >= args.rows) return;
  const auto larger = [](float a, float b) { return fmaxf(a, b); };
  const auto add = [](double a, double b) { return a + b; };
  RowPart whole;
  for (int segment = lane; segment < args.segments; segment += kWarpLanes) {
    whole.reference = larger(whole.reference, args.parts[segment * args.stride + row].reference);
  }
  whole.reference = across_warp(whole.reference, larger);
  for (int segment = lane; segment < args.segments; segment += kWarpLanes) {
    const RowPart part = args.parts[segment * args.stride + row];
    whole.any |= part.any;
    whole.held |= part.held;
    if (part.reference == kNoReference) continue;
    const float shift = part.reference - whole.reference;
    const double scale = exact_power(shift);
    whole.sum += scale * part.sum;
    whole.moment += scale * (part.moment + static_cast<double>(shift) * part.sum);
    whole.largest = larger(whole.largest, part.largest + shift);
  }
  whole.sum = across_warp(whole.sum, add);
  whole.moment = across_warp(whole.moment, add);
  whole.largest = across_warp(whole.largest, larger);
  const auto either = [](int a, int b) { return a | b; };
  whole.any = across_warp(whole.any, either);
  whole.held = across_warp(whole.held, either);
  if (lane == 0) args.rows_out[row] = whole;
}

__global__ void combine_tiles(const __grid_constant__ CombineArgs args) {
  const int row = row_of_thread();
  if (row >= args.rows) return;
  RowTotals totals;
  for (int tile = args.first_tile; tile < args.end_tile; ++tile) {
    const TileRowSums sums = args.row_sums[tile * args.stride + row];
    totals.entropy += static_cast<double>(sums.entropy);
    totals.same_position += static_cast<double>(sums.same_position);
    totals.band += static_cast<double>(sums.band);
    totals.local += static_cast<double>(sums.local);
    if (sums.max_weight > totals.max_weight) {
      totals.max_weight = sums.max_weight;
      totals.max_key = sums.max_key;
    }
  }
  args.totals[row] = totals;
  double* masses = args.row_masses + static_cast<int64_t>(row) * args.segments;
  for (int segment = 0; segment < args.segments; ++segment) masses[segment] = 0;
  for (int run = 0; run < args.run_count; ++run) {
    masses[args.runs[run].segment] += static_cast<double>(args.masses[run * args.stride + row]);
  }
}

/// One element a thread, its blocks in order.
__global__ void add_blocks(const __grid_constant__ AddBlocksArgs args) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= args.count) return;
  double total = args.totals[i];
  for (int block = 0; block < args.blocks; ++block) {
    total += static_cast<double>(args.products[block * args.count + i]);
  }
  args.totals[i] = total;
}

LaunchShape row_shape(int64_t rows) {
  return {dim3(static_cast<unsigned>((rows + kCombineThreads - 1) / kCombineThreads)),
          kCombineThreads, 0};
}

}  // namespace

cudaError_t launch_add_blocks(const AddBlocksArgs& args, cudaStream_t stream) {
  return launch(add_blocks, row_shape(args.count), stream, args);
}

cudaError_t launch_combine_rows(const CombineRowsArgs& args, cudaStream_t stream) {
  return launch(combine_rows, row_shape(int64_t{args.rows} * kWarpLanes), stream, args);
}

cudaError_t launch_combine_tiles(const CombineArgs& args, cudaStream_t stream) {
  return launch(combine_tiles, row_shape(args.rows), stream, args);
}

}  // namespace attnscope::cuda
