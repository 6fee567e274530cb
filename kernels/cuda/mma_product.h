// Products on the tensor cores of sm_80 and later, by mma.sync. Device code.
#pragma once

#include <tensor_core.h>

#include "kernels/cuda/tile_entries.h"

namespace attnscope::cuda {

/// Products of f16 or bf16 tiles. One tile of rows meets many of keys, or one of keys many of rows:
/// the one stays in shared memory, the others pass through a ring of stages there, kChannels
/// channels at a time, fetched ahead of their use by cp.async. compute() must be called for every
/// tile that is not empty, in order.
///
/// In shared memory a row's 64 channels are eight units of 16 bytes; row r has unit u at place
/// u ^ (r % 8), so that ldmatrix, which reads the same unit of eight rows, meets every bank once.
template <class Tag>
class MmaProduct {
 public:
  static constexpr bool kFeatures = false;

  /// Rows [row_begin, row_end) and keys [key_begin, key_end), in tiles; one of both is a single
  /// one.
  __device__ MmaProduct(const CallArgs& call, int row_begin, int row_end, int key_begin,
                        int key_end)
      : call_(call),
        keys_pass_(row_end - row_begin == 1),
        fixed_(keys_pass_ ? row_begin : key_begin),
        end_(keys_pass_ ? key_end : row_end),
        chunks_((call.padded_dim + kChannels - 1) / kChannels),
        fixed_tile_(dynamic_shared_memory()),
        ring_(fixed_tile_ + chunks_ * kStageBytes) {
    fetched_tile_ = next_tile(keys_pass_ ? key_begin : row_begin);
    if (fetched_tile_ >= end_) return;
    for (int chunk = 0; chunk < chunks_; ++chunk) {
      fetch(fixed_tile_ + chunk * kStageBytes, keys_pass_, fixed_, chunk);
    }
    for (int stage = 0; stage < kStages - 1; ++stage) fetch_next();
  }

  __device__ void compute(int, int, Piece (&pieces)[kPieces]) {
#pragma unroll
    for (Piece& piece : pieces) {
#pragma unroll
      for (auto& group : piece) {
#pragma unroll
        for (float& value : group) value = 0;
      }
    }
    for (int chunk = 0; chunk < chunks_; ++chunk) {
      copy_async_wait<kStages - 2>();
      // Now all threads see the stage that is used next, and have left the one that is filled next.
      block_barrier();
      fetch_next();
      const unsigned char* stage = ring_ + used_ * kStageBytes;
      const unsigned char* fixed = fixed_tile_ + chunk * kStageBytes;
      used_ = used_ + 1 == kStages ? 0 : used_ + 1;
      const int left = (call_.padded_dim - chunk * kChannels) / kStep;
      const int steps = left < kChannels / kStep ? left : kChannels / kStep;
      for (int step = 0; step < steps; ++step) {
        multiply(keys_pass_ ? fixed : stage, keys_pass_ ? stage : fixed, step, pieces);
      }
    }
  }

  /// Bytes of dynamic shared memory a block needs for heads of this width.
  static int64_t shared_bytes(int padded_dim) {
    return (static_cast<int64_t>(padded_dim + kChannels - 1) / kChannels + kStages) * kStageBytes;
  }

 private:
  static constexpr int kChannels = 64;
  static constexpr int kStep = 16;  ///< channels of one instruction
  static constexpr int kStages = 3;
  static constexpr int kUnit = 16;  ///< bytes
  static constexpr int kRowBytes = kChannels * 2;
  static constexpr int kStageBytes = kTileRows * kRowBytes;
  static_assert(kTileRows == kTileKeys);

  /// The next tile from `tile` on that the mask does not leave empty.
  __device__ int next_tile(int tile) const {
    while (tile < end_ && (keys_pass_ ? tile_class(call_, fixed_, tile)
                                      : tile_class(call_, tile, fixed_)) == kEmptyTile) {
      ++tile;
    }
    return tile;
  }

  __device__ static int place(int row, int unit) {
    return row * kRowBytes + (unit ^ (row % 8)) * kUnit;
  }

  /// Starts to copy 64 channels of a tile; what lies beyond padded_dim becomes 0.
  __device__ void fetch(unsigned char* to, bool queries, int tile, int chunk) const {
    const auto* tensor = static_cast<const unsigned char*>(queries ? call_.queries : call_.keys);
    for (int i = static_cast<int>(threadIdx.x); i < kTileRows * 8; i += kThreads) {
      const int row = i / 8;
      const int unit = i % 8;
      const int channel = chunk * kChannels + unit * 8;
      const int64_t line = static_cast<int64_t>(tile) * kTileRows + row;
      copy_async_16(to + place(row, unit), tensor + (line * call_.padded_dim + channel) * 2,
                    channel < call_.padded_dim);
    }
  }

  /// The next chunk of the tiles that pass by; an empty group where none is left, so that groups
  /// can be counted.
  __device__ void fetch_next() {
    if (fetched_tile_ < end_) {
      fetch(ring_ + filled_ * kStageBytes, !keys_pass_, fetched_tile_, fetched_chunk_);
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
                                  Piece (&pieces)[kPieces]) {
    const int matrix = lane_id() / 8;
    const int line = lane_id() % 8;
    unsigned a[kPieces][4];
#pragma unroll
    for (int piece = 0; piece < kPieces; ++piece) {
      // Rows 0–7 and 8–15 of the first eight channels, then of the others.
      const int row = (warp_id() * kPieces + piece) * kPieceRows + line + 8 * (matrix % 2);
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
  const bool keys_pass_;
  const int fixed_;
  const int end_;
  const int chunks_;
  unsigned char* const fixed_tile_;
  unsigned char* const ring_;
  int fetched_tile_ = 0, fetched_chunk_ = 0;
  int filled_ = 0, used_ = 0;
};

}  // namespace attnscope::cuda
