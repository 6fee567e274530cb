// Products on the tensor cores of sm_90a, by wgmma. Device code.
#pragma once

#include <warpgroup.h>

#include "kernels/cuda/kernel/tile_entries.h"

namespace attnscope::cuda {

/// Products of f16 or bf16 tiles, which lie in device memory as shared memory is to have them
/// (kChunkChannels). A block has a warpgroup for each of its kRowTiles tiles of rows, and one whose
/// first thread lets the bulk copy engine fetch: the tiles of rows once, those of keys through a
/// ring of stages, a chunk of channels each. While one warpgroup works on entries the other's
/// products are made, and both use the same keys.
///
/// Every stage has two barriers in shared memory: `full` is reached when its bytes are there,
/// `empty` when all warps have left it. Each warp passes every stage, also those of tiles that only
/// the other rows need: otherwise it could come to a stage's `empty` twice in one round.
template <class Tag>
class WgmmaProduct {
 public:
  static constexpr bool kFeatures = false;
  static constexpr int kRowTiles = 2;
  static constexpr int kBlockThreads = (kRowTiles + 1) * kThreads;
  static constexpr bool kOverlaps = true;
  /// A tile's chunks are all in the ring at once.
  static constexpr int kMostChunks = 4;

  __device__ WgmmaProduct(const CallArgs& call, int first_row_tile, int key_begin, int key_end)
      : call_(call),
        first_row_tile_(first_row_tile),
        row_tiles_(call.row_tiles - first_row_tile < kRowTiles ? call.row_tiles - first_row_tile
                                                               : kRowTiles),
        group_(static_cast<int>(threadIdx.x) / kThreads),
        key_begin_(key_begin),
        key_end_(key_end),
        chunks_(chunks_of(call.padded_dim)),
        rows_(dynamic_shared_memory()),
        ring_(rows_ + kRowTiles * chunks_ * kChunkBytes),
        full_(reinterpret_cast<uint64_t*>(ring_ + kStages * kChunkBytes)),
        empty_(full_ + kStages),
        rows_full_(empty_ + kStages) {}

  /// False for threads that have nothing to compute.
  __device__ bool begin() {
    if (threadIdx.x == 0) {
      for (int stage = 0; stage < kStages; ++stage) {
        barrier_init(full_ + stage, 1);
        barrier_init(empty_ + stage, static_cast<unsigned>(row_tiles_ * kWarps));
      }
      barrier_init(rows_full_, 1);
      barrier_init_fence();
    }
    block_barrier();
    // 64 Ki registers for 384 threads: most go to those that hold accumulators.
    if (group_ == kRowTiles) {
      registers_down<24>();
      if (threadIdx.x % kThreads == 0) feed();
      return false;
    }
    registers_up<240>();
    return group_ < row_tiles_;
  }

  __device__ int row_tile() const { return first_row_tile_ + group_; }

  /// Row sums of heads of one chunk wait for powers of two, others for products.
  static constexpr bool takes_polynomial(int padded_dim) { return chunks_of(padded_dim) == 1; }

  /// For every key tile, in order: compute(), pass_over(), or both pieces by start() and finish(),
  /// then leave_tile().
  __device__ void compute(int, WorkItem (&pieces)[kPieces]) {
    wait_for_rows();
    int stage = stage_;
    unsigned parity = parity_;
    for (int chunk = 0; chunk < chunks_; ++chunk) {
      barrier_wait(full_ + stage, parity);
      // Nothing may branch from here to the last product: the compiler would make each wait for
      // the one before. Channels that a head does not have are zeros.
      wgmma_begin(pieces);
#pragma unroll
      for (int step = 0; step < kChunkChannels / kStep; ++step) {
#pragma unroll
        for (int piece = 0; piece < kPieces; ++piece) {
          multiply(piece, chunk, step, stage, pieces[piece]);
        }
      }
      wgmma_commit();
      advance(stage, parity);
    }
    wgmma_wait(pieces);
    leave_tile();
  }

  /// The products of a piece of the tile are under way until finish(); one at a time.
  __device__ void start(int piece, WorkItem& item) {
    wait_for_rows();
    int stage = stage_;
    unsigned parity = parity_;
    for (int chunk = 0; chunk < chunks_; ++chunk) {
      barrier_wait(full_ + stage, parity);
      wgmma_begin(item);
#pragma unroll
      for (int step = 0; step < kChunkChannels / kStep; ++step) {
        multiply(piece, chunk, step, stage, item);
      }
      wgmma_commit();
      advance(stage, parity);
    }
  }
  __device__ void finish(WorkItem& item) { wgmma_wait(item); }

  __device__ void leave_tile() {
    for (int chunk = 0; chunk < chunks_; ++chunk) {
      leave(stage_);
      advance(stage_, parity_);
    }
  }

  __device__ void pass_over(int key_tile) {
    if (!wanted(key_tile)) return;
    for (int chunk = 0; chunk < chunks_; ++chunk) {
      barrier_wait(full_ + stage_, parity_);
      leave(stage_);
      advance(stage_, parity_);
    }
  }

  /// Bytes of dynamic shared memory a block needs for heads of this width; more than any device has
  /// where the ring cannot hold a tile of keys.
  static int64_t shared_bytes(int padded_dim) {
    const int64_t chunks = chunks_of(padded_dim);
    if (chunks > kMostChunks) return INT64_MAX;
    return (kRowTiles * chunks + kStages) * kChunkBytes +
           (2 * kStages + 1) * static_cast<int64_t>(sizeof(uint64_t));
  }

 private:
  static constexpr int kStep = 16;  ///< channels of one instruction
  static constexpr int kStepBytes = kStep * 2;
  static constexpr int kStages = 6;
  static_assert(kMostChunks <= kStages);

  __host__ __device__ static constexpr int chunks_of(int padded_dim) {
    return (padded_dim + kChunkChannels - 1) / kChunkChannels;
  }

  /// True where any of the block's rows needs the tile.
  __device__ bool wanted(int key_tile) const {
    bool any = false;
    for (int i = 0; i < row_tiles_; ++i) {
      any |= tile_class(call_, first_row_tile_ + i, key_tile) != kEmptyTile;
    }
    return any;
  }

  /// To the next stage of the ring, and the parity of its phase.
  __device__ static void advance(int& stage, unsigned& parity) {
    stage = stage + 1 == kStages ? 0 : stage + 1;
    if (stage == 0) parity ^= 1;
  }

  __device__ void wait_for_rows() {
    if (!rows_seen_) barrier_wait(rows_full_, 0);
    rows_seen_ = true;
  }

  /// Adds the products of 16 channels of a chunk, of the keys in a stage.
  __device__ void multiply(int piece, int chunk, int step, int stage, WorkItem& item) const {
    const unsigned char* const queries = rows_ + (group_ * chunks_ + chunk) * kChunkBytes +
                                         piece * kWarps * kPieceRows * kChunkRowBytes +
                                         step * kStepBytes;
    const unsigned char* const keys = ring_ + stage * kChunkBytes + step * kStepBytes;
    wgmma_64x128x16(item, queries, keys, chunk + step > 0, Tag());
  }

  /// The calling warp reads the stage no more.
  __device__ void leave(int stage) {
    warp_barrier();
    if (lane_id() == 0) barrier_arrive(empty_ + stage);
  }

  /// Fetches everything; by one thread.
  __device__ void feed() {
    const auto* const keys = static_cast<const unsigned char*>(call_.keys);
    bool any = false;
    for (int tile = key_begin_; tile < key_end_; ++tile) {
      if (!wanted(tile)) continue;
      if (!any) fetch_rows();
      any = true;
      for (int chunk = 0; chunk < chunks_; ++chunk) {
        // The first round finds empty stages: the phase before a barrier's first counts as over.
        barrier_wait(empty_ + stage_, parity_ ^ 1);
        barrier_arrive_expect(full_ + stage_, kChunkBytes);
        copy_bulk(ring_ + stage_ * kChunkBytes,
                  keys + (static_cast<int64_t>(tile) * chunks_ + chunk) * kChunkBytes, kChunkBytes,
                  full_ + stage_);
        advance(stage_, parity_);
      }
    }
  }

  __device__ void fetch_rows() {
    const int bytes = chunks_ * kChunkBytes;
    barrier_arrive_expect(rows_full_, static_cast<unsigned>(row_tiles_ * bytes));
    for (int i = 0; i < row_tiles_; ++i) {
      copy_bulk(rows_ + i * bytes,
                static_cast<const unsigned char*>(call_.queries) +
                    static_cast<int64_t>(first_row_tile_ + i) * bytes,
                static_cast<unsigned>(bytes), rows_full_);
    }
  }

  const CallArgs& call_;
  const int first_row_tile_;
  const int row_tiles_;  ///< of the block, that exist
  const int group_;      ///< of threads
  const int key_begin_, key_end_;
  const int chunks_;
  unsigned char* const rows_;
  unsigned char* const ring_;
  uint64_t* const full_;
  uint64_t* const empty_;
  uint64_t* const rows_full_;
  int stage_ = 0;
  unsigned parity_ = 0;
  bool rows_seen_ = false;
};

}  // namespace attnscope::cuda
