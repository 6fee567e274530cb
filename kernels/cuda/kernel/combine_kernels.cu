// What thread blocks found about pieces of rows, put together in order.
#include <device_intrinsics.h>

#include "kernels/cuda/kernel/kernel_set.h"
#include "kernels/cuda/kernel/launch.h"

namespace attnscope::cuda {
namespace {

constexpr int kCombineThreads = 128;

__device__ int row_of_thread() { return static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); }

/// 2^n for whole n ≤ 0; 0 below what double holds, and for NaN.
__device__ double exact_power(float n) {
  return n >= -1000.0f ? ldexp(1.0, static_cast<int>(n)) : 0.0;
}

/// One row a thread: its segments in order, all by the largest of their references.
__global__ void combine_rows(CombineRowsArgs args) {
  const int row = row_of_thread();
  if (row >= args.rows) return;
  RowPart whole;
  for (int segment = 0; segment < args.segments; ++segment) {
    const float reference = args.parts[segment * args.stride + row].reference;
    if (reference > whole.reference) whole.reference = reference;
  }
  for (int segment = 0; segment < args.segments; ++segment) {
    const RowPart part = args.parts[segment * args.stride + row];
    whole.any |= part.any;
    if (part.reference == kNoReference) continue;
    const float shift = part.reference - whole.reference;
    const double scale = exact_power(shift);
    whole.sum += scale * part.sum;
    whole.moment += scale * (part.moment + static_cast<double>(shift) * part.sum);
    whole.largest = fmaxf(whole.largest, part.largest + shift);
  }
  args.rows_out[row] = whole;
}

__global__ void combine_tiles(CombineArgs args) {
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
__global__ void add_blocks(AddBlocksArgs args) {
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
  return launch(combine_rows, row_shape(args.rows), stream, args);
}

cudaError_t launch_combine_tiles(const CombineArgs& args, cudaStream_t stream) {
  return launch(combine_tiles, row_shape(args.rows), stream, args);
}

}  // namespace attnscope::cuda
