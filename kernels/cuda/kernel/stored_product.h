// Products that cuBLAS has left in device memory. Device code.
#pragma once

#include "kernels/cuda/kernel/tile_entries.h"

namespace attnscope::cuda {

/// Reads the products of a tile from CallArgs::products.
class StoredProduct {
 public:
  /// Products may be those of linear scores' features.
  static constexpr bool kFeatures = true;
  static constexpr int kRowTiles = 1;
  static constexpr int kBlockThreads = kThreads;
  static constexpr bool kOverlaps = false;
  static constexpr bool takes_polynomial(int) { return false; }

  __device__ StoredProduct(const CallArgs& call, int row_tile, int, int)
      : call_(call), row_tile_(row_tile) {}

  __device__ bool begin() { return true; }
  __device__ int row_tile() const { return row_tile_; }
  __device__ void pass_over(int) {}

  __device__ void compute(int key_tile, WorkItem (&pieces)[kPieces]) {
    const int64_t column = static_cast<int64_t>(key_tile - call_.products_first) * kTileKeys;
#pragma unroll
    for (int piece = 0; piece < kPieces; ++piece) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int64_t row = static_cast<int64_t>(row_tile_) * kTileRows + row_of(piece, half);
        const float* line = call_.products + row * call_.products_stride + column;
#pragma unroll
        for (int group = 0; group < kGroups; ++group) {
          const auto pair = *reinterpret_cast<const float2*>(line + key_of(group, 0));
          pieces[piece][group][2 * half] = pair.x;
          pieces[piece][group][2 * half + 1] = pair.y;
        }
      }
    }
  }

  /// Bytes of dynamic shared memory a block needs.
  static int64_t shared_bytes(int) { return 0; }

 private:
  const CallArgs& call_;
  const int row_tile_;
};

}  // namespace attnscope::cuda
