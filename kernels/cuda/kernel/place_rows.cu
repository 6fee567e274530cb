// Rows of Q and K from their tensor's order to that of the kernels.
#include "kernels/cuda/kernel/place_rows.h"

#include <device_intrinsics.h>

#include <climits>

#include "kernels/cuda/kernel/launch.h"
#include "kernels/cuda/kernel/tile_args.h"

namespace attnscope::cuda {
namespace {

constexpr int kPlaceThreads = 256;
constexpr int kUnitHalves = kUnitBytes / 2;

/// 16 bytes of a row, zeros behind its end.
__device__ uint4 unit_of_row(const unsigned char* row, int unit, int row_bytes) {
  const int at = unit * kUnitBytes;
  uint4 value = make_uint4(0, 0, 0, 0);
  if (row_bytes % kUnitBytes == 0) {
    if (at < row_bytes) value = *reinterpret_cast<const uint4*>(row + at);
    return value;
  }
  // Rows of some widths begin between units.
  unsigned words[kUnitHalves / 2] = {0, 0, 0, 0};
#pragma unroll
  for (int half = 0; half < kUnitHalves; ++half) {
    if (at + 2 * half >= row_bytes) continue;
    const unsigned bits = *reinterpret_cast<const unsigned short*>(row + at + 2 * half);
    words[half / 2] |= bits << (half % 2 * 16);
  }
  return make_uint4(words[0], words[1], words[2], words[3]);
}

/// Where a unit of a row begins, in bytes.
__device__ int64_t place_of_unit(const PlaceRowsArgs& args, int row, int unit) {
  if (!args.tiled) return static_cast<int64_t>(row) * args.row_bytes + unit * kUnitBytes;
  constexpr int kChunkUnits = kChunkRowBytes / kUnitBytes;
  const int in_tile = args.queries ? query_place(row % kTileRows) : row % kTileRows;
  return static_cast<int64_t>(row / kTileRows) * kTileRows * args.row_bytes +
         unit / kChunkUnits * kChunkBytes + in_tile * kChunkRowBytes +
         ((unit % kChunkUnits) ^ (in_tile % kChunkUnits)) * kUnitBytes;
}

/// One unit a thread.
__global__ void place_rows(PlaceRowsArgs args) {
  const int units = args.row_bytes / kUnitBytes;
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int row = i / units;
  if (row >= args.out_rows) return;
  const int unit = i % units;
  uint4 value = make_uint4(0, 0, 0, 0);
  if (row < args.rows) {
    value = unit_of_row(static_cast<const unsigned char*>(args.source) +
                            static_cast<int64_t>(row) * args.source_bytes,
                        unit, args.source_bytes);
  }
  *reinterpret_cast<uint4*>(static_cast<unsigned char*>(args.out) +
                            place_of_unit(args, row, unit)) = value;
}

}  // namespace

cudaError_t launch_place_rows(const PlaceRowsArgs& args, cudaStream_t stream) {
  const int64_t units = int64_t{args.out_rows} * (args.row_bytes / kUnitBytes);
  // Threads are counted in 32 bits.
  if (units > INT_MAX - kPlaceThreads) return cudaErrorInvalidValue;
  const LaunchShape shape{dim3(static_cast<unsigned>((units + kPlaceThreads - 1) / kPlaceThreads)),
                          kPlaceThreads, 0};
  return launch(place_rows, shape, stream, args);
}

}  // namespace attnscope::cuda
