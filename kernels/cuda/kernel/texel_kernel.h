// Entries that are pooled where they are made. Device code.
#pragma once

#include "kernels/cuda/kernel/emit_kernel.h"
#include "kernels/cuda/kernel/texel_args.h"

namespace attnscope::cuda {

/// What the entries of a block add up to, of those that one lane holds or of all. Sums are float32
/// within a lane (at most 32 entries) and double across lanes.
struct TexelSum {
  float max;
  double sum;
  int count;  ///< of logits that are not masked

  /// Adds those of the lane whose number differs in this bit.
  __device__ void add_lane(int mask, bool counts) {
    max = fmaxf(max, shuffle_xor(max, mask));
    sum += shuffle_xor(sum, mask);
    if (counts) count += shuffle_xor(count, mask);
  }
};

/// The bits of a half float as a texture holds it (texel_number of the window).
__device__ inline unsigned short texel_bits(float value, bool logits) {
  if (value != value) return 0x7c00;
  if (logits && value == kMasked) return 0xfc00;
  // A weight of 0 is the least number: −inf is a masked one's.
  return to_half_bits(fmaxf(fminf(logits ? value : log2_fast(value), kF16Max), -kF16Max));
}

/// Stores texel (row, column), counted in the call's texels and from key 0.
__device__ inline void store_texel(const TexelArgs& args, int64_t row, int column, float max,
                                   float mean) {
  const int64_t first = static_cast<int64_t>(args.first_tile) * kTileKeys >> args.level;
  const int64_t at = row * args.stride + column - first;
  args.max[at] = max;
  if (args.mean != nullptr) args.mean[at] = mean;
  if (args.pairs == nullptr || column < args.first_texel || column >= args.end_texel) return;
  static_cast<ushort2*>(args.pairs)[row * args.pairs_stride + column - args.first_texel] =
      ushort2{texel_bits(max, args.logits), texel_bits(mean, args.logits)};
}

/// An entry as it is emitted; of a row that does not exist, as if it were masked.
__device__ inline float texel_entry(const TexelArgs& args, int64_t line, float entry) {
  if (line >= args.call.rows) return args.logits ? kMasked : 0.0f;
  return args.logits || entry >= 0x1p-100f ? entry : 0.0f;
}

/// Level 0: every entry is a texel.
__device__ inline void store_entry_texels(const TexelArgs& args, int row_tile, int key_tile,
                                          const WorkItem (&pieces)[kPieces]) {
#pragma unroll
  for (int piece = 0; piece < kPieces; ++piece) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int64_t line = static_cast<int64_t>(row_tile) * kTileRows + row_of(piece, half);
      if (line >= args.call.rows) continue;
#pragma unroll
      for (int group = 0; group < kGroups; ++group) {
#pragma unroll
        for (int c = 0; c < 2; ++c) {
          const float entry = texel_entry(args, line, pieces[piece][group][2 * half + c]);
          store_texel(args, line, key_tile * kTileKeys + key_of(group, c), entry, entry);
        }
      }
    }
  }
}

/// What a lane holds of a block, in accumulators: two neighbouring entries up to level 3, and with
/// kLevel 4 and 5 more of them, see tile_args.h.
template <int kLevel>
struct LaneBlock {
  static constexpr int kPiecesOf = kLevel > 4 ? 2 : 1;
  static constexpr int kHalvesOf = kLevel > 3 ? 2 : 1;
  static constexpr int kGroupsOf = kLevel > 3 ? 1 << (kLevel - 3) : 1;
};

/// The sum of what this lane holds of the block that begins with this piece, half and group.
template <int kLevel>
__device__ inline TexelSum sum_of_lane(const TexelArgs& args, int row_tile, int piece, int half,
                                       int group, const WorkItem (&pieces)[kPieces]) {
  using Block = LaneBlock<kLevel>;
  float max = args.logits ? kMasked : 0.0f;
  float sum = 0;
  int count = 0;
#pragma unroll
  for (int p = piece; p < piece + Block::kPiecesOf; ++p) {
#pragma unroll
    for (int h = half; h < half + Block::kHalvesOf; ++h) {
      const int64_t line = static_cast<int64_t>(row_tile) * kTileRows + row_of(p, h);
#pragma unroll
      for (int g = group; g < group + Block::kGroupsOf; ++g) {
#pragma unroll
        for (int c = 0; c < 2; ++c) {
          const float entry = texel_entry(args, line, pieces[p][g][2 * h + c]);
          const bool there = entry > kMasked;
          max = fmaxf(max, entry);
          sum += there ? entry : 0.0f;
          count += there ? 1 : 0;
        }
      }
    }
  }
  return {max, static_cast<double>(sum), count};
}

/// The levels from 1 on: kLevel 3 is also for those below. A lane's number has the key in its bits
/// 0 and 1 and the row in bits 2 to 4, see tile_args.h.
template <int kLevel>
__device__ inline void store_block_texels(const TexelArgs& args, int row_tile, int key_tile,
                                          const WorkItem (&pieces)[kPieces]) {
  using Block = LaneBlock<kLevel>;
  const int side = 1 << args.level;
  // The bits in which the lanes of a block differ.
  const int row_bits = args.level < 3 ? (side - 1) << 2 : 7 << 2;
  const int key_bits = args.level < 3 ? side / 2 - 1 : 3;
  const bool stores = (lane_id() & (row_bits | key_bits)) == 0;
#pragma unroll
  for (int piece = 0; piece < kPieces; piece += Block::kPiecesOf) {
#pragma unroll
    for (int half = 0; half < 2; half += Block::kHalvesOf) {
      const int64_t line = static_cast<int64_t>(row_tile) * kTileRows + row_of(piece, half);
#pragma unroll
      for (int group = 0; group < kGroups; group += Block::kGroupsOf) {
        TexelSum texel = sum_of_lane<kLevel>(args, row_tile, piece, half, group, pieces);
#pragma unroll
        for (int bit = 1; bit < 32; bit *= 2) {
          if (((row_bits | key_bits) & bit) != 0) texel.add_lane(bit, args.logits);
        }
        const int key = key_tile * kTileKeys + key_of(group, 0);
        if (!stores || line >= args.call.rows || key >= args.call.num_keys) continue;
        int entries = texel.count;
        if (!args.logits) {
          const int64_t rows = args.call.rows - line;
          const int keys = args.call.num_keys - key;
          entries = (rows < side ? static_cast<int>(rows) : side) * (keys < side ? keys : side);
        }
        const float mean =
            entries > 0 ? static_cast<float>(texel.sum) / static_cast<float>(entries) : kMasked;
        store_texel(args, line >> args.level, key >> args.level, texel.max, mean);
      }
    }
  }
}

/// Grid (row tiles, splits), as emit_rows: one block pools a share of the key tiles of its rows.
template <class Product>
__global__ void __launch_bounds__(kThreads) pool_tiles(TexelArgs args) {
  static_assert(Product::kRowTiles == 1 && Product::kBlockThreads == kThreads);
  const int row_tile = static_cast<int>(blockIdx.x);
  const int tiles = args.end_tile - args.first_tile;
  const int share = (tiles + static_cast<int>(gridDim.y) - 1) / static_cast<int>(gridDim.y);
  const int begin = args.first_tile + static_cast<int>(blockIdx.y) * share;
  const int end = begin + share < args.end_tile ? begin + share : args.end_tile;
  Product product(args.call, row_tile, begin, end);
  product.begin();
  for (int key_tile = begin; key_tile < end; ++key_tile) {
    WorkItem pieces[kPieces];
    masked_products(args.call, product, row_tile, key_tile, pieces);
#pragma unroll
    for (int piece = 0; piece < kPieces; ++piece) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int64_t line = static_cast<int64_t>(row_tile) * kTileRows + row_of(piece, half);
        make_entries<Product::kFeatures>(args.call, args.logits, args.scales, line, half,
                                         pieces[piece]);
      }
    }
    switch (args.level) {
      case 0:
        store_entry_texels(args, row_tile, key_tile, pieces);
        break;
      case 4:
        store_block_texels<4>(args, row_tile, key_tile, pieces);
        break;
      case 5:
        store_block_texels<5>(args, row_tile, key_tile, pieces);
        break;
      default:
        store_block_texels<3>(args, row_tile, key_tile, pieces);
    }
  }
}

}  // namespace attnscope::cuda
