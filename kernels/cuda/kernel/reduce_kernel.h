// Reductions of a tile's weights, which lie in shared memory for as long as they are needed. Device
// code.
#pragma once

#include "kernels/cuda/kernel/emit_kernel.h"
#include "kernels/cuda/kernel/reduce_args.h"

namespace attnscope::cuda {

/// The tile's weights and the places of its rows and keys, in shared memory. One element of
/// padding a row lets threads walk rows, columns and diagonals without meeting in a bank.
struct TileWeights {
  static constexpr int kPitch = kTileKeys + 1;
  float* weights;   ///< [kTileRows, kPitch], 0 where masked or outside
  RowFacts* rows;   ///< [kTileRows]
  GridPlace* keys;  ///< [kTileKeys]

  static constexpr int64_t kBytes =
      int64_t{kTileRows} * kPitch * 4 +
      kTileRows * static_cast<int64_t>(sizeof(RowFacts) + sizeof(GridPlace));

  __device__ explicit TileWeights(unsigned char* shared)
      : weights(reinterpret_cast<float*>(shared)),
        rows(reinterpret_cast<RowFacts*>(weights + kTileRows * kPitch)),
        keys(reinterpret_cast<GridPlace*>(rows + kTileRows)) {}

  __device__ float at(int row, int key) const { return weights[row * kPitch + key]; }
};

/// One row of the tile a thread: its masses, its largest weight, its places.
__device__ inline void reduce_row(const ReduceArgs& args, const TileWeights& tile, int row_tile,
                                  int key_tile) {
  const auto row = static_cast<int>(threadIdx.x);
  const int64_t stride = static_cast<int64_t>(args.call.row_tiles) * kTileRows;
  const int64_t line = static_cast<int64_t>(row_tile) * kTileRows + row;
  TileRowSums sums;
  for (int run = args.tile_runs[key_tile]; run < args.tile_runs[key_tile + 1]; ++run) {
    const KeyRun keys = args.runs[run];
    float mass = 0;
    for (int key = keys.begin; key < keys.end; ++key) {
      const float weight = tile.at(row, key);
      mass += weight;
      if (args.entropy && weight > 0) sums.entropy -= weight * logf(weight);
      if (weight > sums.max_weight) {
        sums.max_weight = weight;
        sums.max_key = key_tile * kTileKeys + key;
      }
    }
    args.masses[run * stride + line] = mass;
  }
  const GridPlace from = tile.rows[row].place;
  if (args.places && from.linear != kNowhere) {
    for (int key = 0; key < kTileKeys; ++key) {
      const GridPlace to = tile.keys[key];
      if (to.linear == kNowhere) continue;
      const float weight = tile.at(row, key);
      const int dt = abs(to.t - from.t);
      const int dy = abs(to.y - from.y);
      const int dx = abs(to.x - from.x);
      const int reach = dy < dx ? dx : dy;
      if (dt != 0 && reach == 0) sums.same_position += weight;
      if (reach <= args.band) sums.band += weight;
      if (dt <= 1 && reach <= 2) sums.local += weight;
    }
  }
  args.row_sums[key_tile * stride + line] = sums;
}

__device__ inline unsigned long long to_fixed(float sum, double scale) {
  return static_cast<unsigned long long>(llrint(static_cast<double>(sum) * scale));
}

/// One key of the tile a thread: its sums over the rows, and over the rows of every block.
__device__ inline void reduce_column(const ReduceArgs& args, const TileWeights& tile, int rows,
                                     int key_tile) {
  const auto column = static_cast<int>(threadIdx.x);
  const int key = key_tile * kTileKeys + column;
  if (key >= args.call.num_keys) return;
  const bool in_block = args.block > 0 && key >= args.first_key && key < args.end_key;
  unsigned long long total = 0;
  unsigned long long block_total = 0;
  float block_max = 0;
  float sum = 0;
  for (int row = 0; row < rows; ++row) {
    const float weight = tile.at(row, column);
    sum += weight;
    block_max = fmaxf(block_max, weight);
    const bool last = row + 1 == rows;
    if (!last && tile.rows[row + 1].begins_group == 0) continue;
    // Only what is wanted: doubles are slow on many devices.
    if (args.columns != nullptr) total += to_fixed(sum, args.fixed_scale);
    if (in_block) block_total += to_fixed(sum, args.block_scale);
    sum = 0;
    const int block_row = tile.rows[row].block_row;
    if (!in_block || (!last && tile.rows[row + 1].block_row == block_row)) continue;
    const int64_t at =
        static_cast<int64_t>(block_row) * args.blocks + (key - args.first_key) / args.block;
    add_atomic(args.block_sums + at, block_total);
    max_atomic(args.block_maxima + at, __builtin_bit_cast(int32_t, block_max));
    block_total = 0;
    block_max = 0;
  }
  if (args.columns != nullptr) add_atomic(args.columns + key, total);
}

/// A thread walks two diagonals of the tile, which together have an element in every row. Sums are
/// taken in where the diagonal or the offset changes, and at the end of every group of rows.
__device__ inline void reduce_diagonals(const ReduceArgs& args, const TileWeights& tile, int rows,
                                        int key_tile) {
  const auto start = static_cast<int>(threadIdx.x);
  constexpr int32_t kNone = -1;
  int32_t diagonal = kNone;
  int32_t offset = kNone;
  float diagonal_sum = 0;
  float offset_sum = 0;
  const auto take = [&](unsigned long long* sums, int32_t& at, float& sum, int32_t next) {
    if (at != kNone && sum != 0) add_atomic(sums + at, to_fixed(sum, args.fixed_scale));
    at = next;
    sum = 0;
  };
  for (int row = 0; row < rows; ++row) {
    const int key = (start + row) % kTileKeys;
    const RowFacts& facts = tile.rows[row];
    const float weight = tile.at(row, key);
    const bool group = facts.begins_group != 0;
    if (args.diagonals != nullptr) {
      const int32_t next = facts.diagonal + key_tile * kTileKeys + key;
      if (group || next != diagonal) take(args.diagonals, diagonal, diagonal_sum, next);
      diagonal_sum += weight;
    }
    if (args.offsets != nullptr) {
      const int32_t to = tile.keys[key].linear;
      const bool both = to != kNowhere && facts.place.linear != kNowhere;
      const int32_t next = both ? to - facts.place.linear + args.offsets_centre : kNone;
      if (group || next != offset) take(args.offsets, offset, offset_sum, next);
      offset_sum += weight;
    }
  }
  if (args.diagonals != nullptr) take(args.diagonals, diagonal, diagonal_sum, kNone);
  if (args.offsets != nullptr) take(args.offsets, offset, offset_sum, kNone);
}

/// Leaves the tile's weights and places in shared memory.
template <class Product>
__device__ inline TileWeights load_tile(const ReduceArgs& args, int row_tile, int key_tile) {
  static_assert(Product::kRowTiles == 1 && Product::kBlockThreads == kThreads);
  const CallArgs& call = args.call;
  Product product(call, row_tile, key_tile, key_tile + 1);
  product.begin();
  WorkItem pieces[kPieces];
  masked_products(call, product, row_tile, key_tile, pieces);
  RowScales scales;
  load_row_scales(call, args.scales, row_tile, scales);
  // The product's own use of the memory ends here.
  block_barrier();
  const TileWeights tile(dynamic_shared_memory());
#pragma unroll
  for (int piece = 0; piece < kPieces; ++piece) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = row_of(piece, half);
      const int64_t line = static_cast<int64_t>(row_tile) * kTileRows + row;
      const bool exists = line < call.rows;
      make_entries<Product::kFeatures>(call.score, false, scales[piece][half], half, pieces[piece]);
#pragma unroll
      for (int group = 0; group < kGroups; ++group) {
#pragma unroll
        for (int c = 0; c < 2; ++c) {
          tile.weights[row * TileWeights::kPitch + key_of(group, c)] =
              exists ? pieces[piece][group][2 * half + c] : 0.0f;
        }
      }
    }
  }
  const auto thread = static_cast<int>(threadIdx.x);
  tile.rows[thread] = args.rows[static_cast<int64_t>(row_tile) * kTileRows + thread];
  if (args.key_places != nullptr) {
    tile.keys[thread] = args.key_places[static_cast<int64_t>(key_tile) * kTileKeys + thread];
  }
  block_barrier();
  return tile;
}

/// Grid (row tiles, key tiles from first_tile on).
template <class Product>
__global__ void __launch_bounds__(kThreads) reduce_tiles(const __grid_constant__ ReduceArgs args) {
  static_assert(kThreads == kTileRows && kThreads == kTileKeys);
  const int row_tile = static_cast<int>(blockIdx.x);
  const int key_tile = args.first_tile + static_cast<int>(blockIdx.y);
  const TileWeights tile = load_tile<Product>(args, row_tile, key_tile);
  const int left = args.call.rows - row_tile * kTileRows;
  const int rows = left < kTileRows ? left : kTileRows;
  if (args.runs != nullptr) reduce_row(args, tile, row_tile, key_tile);
  if (args.columns != nullptr || args.block > 0) reduce_column(args, tile, rows, key_tile);
  if (args.diagonals != nullptr || args.offsets != nullptr) {
    reduce_diagonals(args, tile, rows, key_tile);
  }
}

}  // namespace attnscope::cuda
