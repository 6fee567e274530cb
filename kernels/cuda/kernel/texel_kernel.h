// Entries that are pooled where they are made. Device code.
#pragma once

#include "kernels/cuda/kernel/emit_kernel.h"
#include "kernels/cuda/kernel/texel_args.h"

namespace attnscope::cuda {

/// The maximum, sum and count of a block's entries, of those that one lane holds or of all. Sums
/// are float32 within a lane (at most 32 entries) and double across lanes.
struct TexelSum {
  float max;
  double sum;
  int count;  ///< of logits that are not masked

  __device__ void add(const TexelSum& other) {
    max = fmaxf(max, other.max);
    sum += other.sum;
    count += other.count;
  }
  /// That of the lane whose number differs in this bit.
  __device__ TexelSum of_lane(int bit) const {
    return {shuffle_xor(max, bit), shuffle_xor(sum, bit), shuffle_xor(count, bit)};
  }
};

/// The bits of a half float as a texture holds it (texel_number of the window).
__device__ inline unsigned short texel_bits(float value, bool logits) {
  // Selected and not branched: there are many of them.
  const float log2 = log2_fast(value);
  // A weight of 0 is the least number: −inf is a masked one's.
  const float shown = fmaxf(fminf(logits ? value : log2, kF16Max), -kF16Max);
  const unsigned short bits = to_half_bits(shown);
  return value != value ? 0x7c00 : logits && value == kMasked ? 0xfc00 : bits;
}

/// Texels of one row of texels; columns are counted from key 0. They are stored in two turns, so
/// that the pairs that a window wants are asked for once a row and not once a texel.
struct TexelRowOut {
  float* max;
  float* mean;     ///< null on level 0
  ushort2* pairs;  ///< null: not wanted

  __device__ TexelRowOut(const TexelArgs& args, int64_t row) {
    const int64_t first = static_cast<int64_t>(args.first_tile) * kTileKeys >> args.level;
    max = args.max + (row * args.stride - first);
    mean = args.mean == nullptr ? nullptr : args.mean + (row * args.stride - first);
    pairs = args.pairs == nullptr
                ? nullptr
                : static_cast<ushort2*>(args.pairs) + (row * args.pairs_stride - args.first_texel);
  }
};

__device__ inline void store_pair(const TexelArgs& args, const TexelRowOut& out, int column,
                                  float max, float mean) {
  if (column < args.first_texel || column >= args.end_texel) return;
  out.pairs[column] = ushort2{texel_bits(max, args.logits), texel_bits(mean, args.logits)};
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
      const TexelRowOut out(args, line);
      const int first = key_tile * kTileKeys + key_of(0, 0);
      auto* const max = reinterpret_cast<float2*>(out.max + first);  // tiles begin at even keys
#pragma unroll
      for (int group = 0; group < kGroups; ++group) {
        float2 entries;
        entries.x = texel_entry(args, line, pieces[piece][group][2 * half]);
        entries.y = texel_entry(args, line, pieces[piece][group][2 * half + 1]);
        max[group * 4] = entries;
      }
      if (out.pairs == nullptr) continue;
#pragma unroll
      for (int group = 0; group < kGroups; ++group) {
#pragma unroll
        for (int c = 0; c < 2; ++c) {
          const float entry = texel_entry(args, line, pieces[piece][group][2 * half + c]);
          store_pair(args, out, first + 8 * group + c, entry, entry);
        }
      }
    }
  }
}

/// A block of 2^kLevel by 2^kLevel entries among lanes and accumulators, see tile_args.h: a lane's
/// number has the key in its bits 0 and 1 and the row in bits 2 to 4.
template <int kLevel>
struct LaneBlock {
  // A lane holds two neighbouring entries of it up to level 3, and more from there on.
  static constexpr int kPiecesOf = kLevel > 4 ? 2 : 1;
  static constexpr int kHalvesOf = kLevel > 3 ? 2 : 1;
  static constexpr int kGroupsOf = kLevel > 3 ? 1 << (kLevel - 3) : 1;
  // The bits in which its lanes differ, and how many lanes these are.
  static constexpr int kKeyBits = kLevel < 3 ? kLevel - 1 : 2;
  static constexpr int kRowBits = kLevel < 3 ? kLevel : 3;
  static constexpr int kLaneBits = ((1 << kRowBits) - 1) << 2 | ((1 << kKeyBits) - 1);
  static constexpr int kLanes = 1 << (kKeyBits + kRowBits);
  // Blocks that these lanes meet in a row of a piece, and those that they add up together.
  static constexpr int kBlocks = kGroups / kGroupsOf;
  static constexpr int kTogether = kLanes < kBlocks ? kLanes : kBlocks;
};

/// Which of the blocks that were added up together a lane has in the end.
struct KeptBlock {
  int number = 0;
  bool stores = true;  ///< of several lanes that have it, one
};

/// Adds up what the lanes hold of kCount blocks: for each bit in which the lanes of a block differ,
/// a lane gives half of the blocks to the lane whose number differs in this bit, and takes that
/// one's share of the others, until it has one.
template <class Block, int kCount, int kBit = 1>
__device__ inline void add_lanes(TexelSum (&texels)[Block::kTogether], KeptBlock& kept) {
  if constexpr (kBit < 32) {
    constexpr bool kDiffer = (Block::kLaneBits & kBit) != 0;
    constexpr int kLeft = kDiffer && kCount > 1 ? kCount / 2 : kCount;
    const bool upper = (lane_id() & kBit) != 0;
    if constexpr (kLeft < kCount) {
      kept.number += upper ? kLeft : 0;
#pragma unroll
      for (int i = 0; i < kLeft; ++i) {
        const TexelSum given = upper ? texels[i] : texels[i + kLeft];
        if (upper) texels[i] = texels[i + kLeft];
        texels[i].add(given.of_lane(kBit));
      }
    } else if constexpr (kDiffer) {
      texels[0].add(texels[0].of_lane(kBit));
      kept.stores = kept.stores && !upper;
    }
    add_lanes<Block, kLeft, 2 * kBit>(texels, kept);
  }
}

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

/// The mean of a block that begins with this row and key.
__device__ inline float mean_of(const TexelArgs& args, const TexelSum& texel, int64_t line,
                                int key) {
  const int side = 1 << args.level;
  int entries = texel.count;
  if (!args.logits) {
    const int64_t rows = args.call.rows - line;
    const int keys = args.call.num_keys - key;
    entries = (rows < side ? static_cast<int>(rows) : side) * (keys < side ? keys : side);
  }
  return entries > 0 ? static_cast<float>(texel.sum) * reciprocal_fast(static_cast<float>(entries))
                     : kMasked;
}

/// The levels from 1 on.
template <int kLevel>
__device__ inline void store_block_texels(const TexelArgs& args, int row_tile, int key_tile,
                                          const WorkItem (&pieces)[kPieces]) {
  using Block = LaneBlock<kLevel>;
#pragma unroll
  for (int piece = 0; piece < kPieces; piece += Block::kPiecesOf) {
#pragma unroll
    for (int half = 0; half < 2; half += Block::kHalvesOf) {
      const int64_t row =
          (static_cast<int64_t>(row_tile) * kTileRows + row_of(piece, half)) >> kLevel;
      const TexelRowOut out(args, row);
#pragma unroll
      for (int first = 0; first < Block::kBlocks; first += Block::kTogether) {
        TexelSum texels[Block::kTogether];
#pragma unroll
        for (int i = 0; i < Block::kTogether; ++i) {
          texels[i] = sum_of_lane<kLevel>(args, row_tile, piece, half,
                                          (first + i) * Block::kGroupsOf, pieces);
        }
        KeptBlock kept;
        add_lanes<Block, Block::kTogether>(texels, kept);
        const int column =
            (key_tile * kTileKeys + key_of((first + kept.number) * Block::kGroupsOf, 0)) >> kLevel;
        const int64_t line = row << kLevel;
        const int key = column << kLevel;
        if (!kept.stores || line >= args.call.rows || key >= args.call.num_keys) continue;
        const float mean = mean_of(args, texels[0], line, key);
        out.max[column] = texels[0].max;
        out.mean[column] = mean;
        if (out.pairs != nullptr) store_pair(args, out, column, texels[0].max, mean);
      }
    }
  }
}

/// Grid (row tiles, splits), as emit_rows: one block pools a share of the key tiles of its rows.
template <class Product>
__global__ void __launch_bounds__(kThreads) pool_tiles(const __grid_constant__ TexelArgs args) {
  static_assert(Product::kRowTiles == 1 && Product::kBlockThreads == kThreads);
  const int row_tile = static_cast<int>(blockIdx.x);
  const int tiles = args.end_tile - args.first_tile;
  const int share = (tiles + static_cast<int>(gridDim.y) - 1) / static_cast<int>(gridDim.y);
  const int begin = args.first_tile + static_cast<int>(blockIdx.y) * share;
  const int end = begin + share < args.end_tile ? begin + share : args.end_tile;
  Product product(args.call, row_tile, begin, end);
  product.begin();
  RowScales scales;
  load_row_scales(args.call, args.scales, row_tile, scales);
  for (int key_tile = begin; key_tile < end; ++key_tile) {
    WorkItem pieces[kPieces];
    masked_products(args.call, product, row_tile, key_tile, pieces);
#pragma unroll
    for (int piece = 0; piece < kPieces; ++piece) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        make_entries<Product::kFeatures>(args.call.score, args.logits, scales[piece][half], half,
                                         pieces[piece]);
      }
    }
    switch (args.level) {
      case 0:
        store_entry_texels(args, row_tile, key_tile, pieces);
        break;
      case 1:
        store_block_texels<1>(args, row_tile, key_tile, pieces);
        break;
      case 2:
        store_block_texels<2>(args, row_tile, key_tile, pieces);
        break;
      case 3:
        store_block_texels<3>(args, row_tile, key_tile, pieces);
        break;
      case 4:
        store_block_texels<4>(args, row_tile, key_tile, pieces);
        break;
      default:
        store_block_texels<5>(args, row_tile, key_tile, pieces);
    }
  }
}

}  // namespace attnscope::cuda
