// Products on the tensor cores of sm_80 and later, by mma.sync. Device code.
#pragma once

#include <tensor_core.h>

#include "kernels/cuda/kernel/tile_entries.h"

namespace attnscope::cuda {

/// Products of f16 or bf16 tiles, which lie in device memory as shared memory is to have them
/// (kChunkChannels). The tile of rows stays in shared memory; those of keys pass through a ring of
/// stages there, a chunk of channels at a time, fetched ahead of their use by cp.async.
template <class Tag>
class MmaProduct {
 public:
  static constexpr bool kFeatures = false;
  static constexpr int kRowTiles = 1;
  static constexpr int kBlockThreads = kThreads;
  static constexpr bool kOverlaps = false;
  static constexpr bool takes_polynomial(int) { return false; }

  __device__ MmaProduct(const CallArgs& call, int row_tile, int key_begin, int key_end)
      : call_(call),
        row_tile_(row_tile),
        end_(key_end),
        chunks_(chunks_of(call.padded_dim)),
        rows_(dynamic_shared_memory()),
        ring_(rows_ + chunks_ * kChunkBytes),
        fetched_tile_(key_begin) {}

  __device__ bool begin() {
    fetched_tile_ = next_tile(fetched_tile_);
    if (fetched_tile_ >= end_) return true;
    for (int chunk = 0; chunk < chunks_; ++chunk) {
      fetch(rows_ + chunk * kChunkBytes, call_.queries, row_tile_, chunk);
    }
    for (int stage = 0; stage < kStages - 1; ++stage) fetch_next();
    return true;
  }
  __device__ int row_tile() const { return row_tile_; }
  __device__ void pass_over(int) {}

  /// Must be called for every key tile that the mask does not leave empty, in order.
  __device__ void compute(int, WorkItem (&pieces)[kPieces]) {
    fill(pieces, 0);
    for (int chunk = 0; chunk < chunks_; ++chunk) {
      copy_async_wait<kStages - 2>();
      // Now all threads see the stage that is used next, and have left the one that is filled next.
      block_barrier();
      fetch_next();
      const unsigned char* stage = ring_ + used_ * kChunkBytes;
      const unsigned char* rows = rows_ + chunk * kChunkBytes;
      used_ = used_ + 1 == kStages ? 0 : used_ + 1;
      const int left = (call_.padded_dim - chunk * kChunkChannels) / kStep;
      const int steps = left < kChunkChannels / kStep ? left : kChunkChannels / kStep;
      for (int step = 0; step < steps; ++step) multiply(rows, stage, step, pieces);
    }
  }

  /// Bytes of dynamic shared memory a block needs for heads of this width.
  static int64_t shared_bytes(int padded_dim) {
    return (static_cast<int64_t>(chunks_of(padded_dim)) + kStages) * kChunkBytes;
  }

 private:
  static constexpr int kStep = 16;  ///< channels of one instruction
  static constexpr int kStages = 3;

  __host__ __device__ static constexpr int chunks_of(int padded_dim) {
    return (padded_dim + kChunkChannels - 1) / kChunkChannels;
  }

  /// The next tile from `tile` on that the mask does not leave empty.
  __device__ int next_tile(int tile) const {
    while (tile < end_ && tile_class(call_, row_tile_, tile) == kEmptyTile) ++tile;
    return tile;
  }

  __device__ static int place(int row, int unit) {
    return row * kChunkRowBytes + (unit ^ (row % 8)) * kUnitBytes;
  }

  /// Starts to copy a chunk of a tile.
  __device__ void fetch(unsigned char* to, const void* tensor, int tile, int chunk) const {
    const auto* from = static_cast<const unsigned char*>(tensor) +
                       (static_cast<int64_t>(tile) * chunks_ + chunk) * kChunkBytes;
    for (int at = static_cast<int>(threadIdx.x) * kUnitBytes; at < kChunkBytes;
         at += kThreads * kUnitBytes) {
      copy_async_16(to + at, from + at, true);
    }
  }

  /// The next chunk of the tiles that pass by; an empty group where none is left, so that groups
  /// can be counted.
  __device__ void fetch_next() {
    if (fetched_tile_ < end_) {
      fetch(ring_ + filled_ * kChunkBytes, call_.keys, fetched_tile_, fetched_chunk_);
      filled_ = filled_ + 1 == kStages ? 0 : filled_ + 1;
      if (++fetched_chunk_ == chunks_) {
        fetched_chunk_ = 0;
        fetched_tile_ = next_tile(fetched_tile_ + 1);
      }
    }
    copy_async_commit();
  }

  /// Adds the products of 16 channels.
  __device__ static void multiply(const unsigned char* rows, const unsigned char* keys, int step,
                                  WorkItem (&pieces)[kPieces]) {
    const int matrix = lane_id() / 8;
    const int line = lane_id() % 8;
    unsigned a[kPieces][4];
#pragma unroll
    for (int piece = 0; piece < kPieces; ++piece) {
      // Rows 0–7 and 8–15 of the first eight channels, then of the others.
      const int row =
          query_place((warp_id() * kPieces + piece) * kPieceRows) + line + 8 * (matrix % 2);
      load_matrix_x4(a[piece], rows + place(row, 2 * step + matrix / 2));
    }
#pragma unroll
    for (int pair = 0; pair < kGroups / 2; ++pair) {
      // Both halves of the channels of keys 0–7, then of keys 8–15.
      const int key = pair * 16 + line + 8 * (matrix / 2);
      unsigned b[4];
      load_matrix_x4(b, keys + place(key, 2 * step + matrix % 2));
      const unsigned first[2] = {b[0], b[1]};
      const unsigned second[2] = {b[2], b[3]};
#pragma unroll
      for (int piece = 0; piece < kPieces; ++piece) {
        mma_16x8x16(pieces[piece][2 * pair], a[piece], first, Tag());
        mma_16x8x16(pieces[piece][2 * pair + 1], a[piece], second, Tag());
      }
    }
  }

  const CallArgs& call_;
  const int row_tile_;
  const int end_;
  const int chunks_;
  unsigned char* const rows_;
  unsigned char* const ring_;
  int fetched_tile_, fetched_chunk_ = 0;
  int filled_ = 0, used_ = 0;
};

}  // namespace attnscope::cuda
