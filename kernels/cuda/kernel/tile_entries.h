// Turns the products of one warp's piece of a tile into entries, by masks and exponents. Device
// code.
#pragma once

#include <device_intrinsics.h>

#include "kernels/cuda/kernel/tile_args.h"

namespace attnscope::cuda {

/// The accumulators of one piece, see tile_args.h.
using WorkItem = float[kGroups][4];

__device__ inline int lane_id() { return static_cast<int>(threadIdx.x) % 32; }
/// Of the four warps of a tile.
__device__ inline int warp_id() { return static_cast<int>(threadIdx.x) / 32 % kWarps; }
/// Row of the tile that `half` (0, 1) of this lane's entries of a piece belong to.
__device__ inline int row_of(int piece, int half) {
  return (warp_id() * kPieces + piece) * kPieceRows + lane_id() / 4 + 8 * half;
}
/// Key of the tile of entry c (0, 1) of a group.
__device__ inline int key_of(int group, int c) { return group * 8 + 2 * (lane_id() % 4) + c; }

__device__ inline uint32_t tile_class(const CallArgs& call, int row_tile, int key_tile) {
  if (call.mask.tiles == nullptr) return kFullTile;
  return call.mask
      .tiles[static_cast<int64_t>(row_tile) * call.mask.stride + key_tile - call.mask.first];
}

__device__ inline void fill(WorkItem (&pieces)[kPieces], float value) {
#pragma unroll
  for (WorkItem& piece : pieces) {
#pragma unroll
    for (auto& group : piece) {
#pragma unroll
      for (float& entry : group) entry = value;
    }
  }
}

constexpr float kMasked = -__builtin_inff();

/// The product of an entry that the mask leaves out: so low that its weight is 0 whatever the
/// scale, and lower than any product that counts. Finite, so that no later sum is a NaN.
constexpr float kMaskedProduct = -3e38f;
constexpr float kLowestProduct = -2.9e38f;

/// Words of a mask's bits: keys and groups of keys of one, and the bits of those that are a lane's,
/// counted from its first.
constexpr int kWordKeys = 32;
constexpr int kWordGroups = kWordKeys / 8;
constexpr uint32_t kLaneBits = 0x03030303;

/// Which of a lane's rows have a key that counts in this tile.
using RowsThatCount = bool[kPieces][2];

/// Adds the finite biases of a word of keys, in units of the product, to those whose bit is set;
/// clears the bits of those whose bias is none. Bits and biases are counted from this lane's first
/// key of the word.
__device__ inline void add_biases(const CallArgs& call, const float* biases, int word, int half,
                                  WorkItem& piece, uint32_t& bits) {
#pragma unroll
  for (int i = 0; i < kWordGroups; ++i) {
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      const uint32_t bit = 1u << (8 * i + c);
      if ((bits & bit) == 0) continue;
      const float bias = biases[8 * i + c];
      if (!(bias >= -3.402823466e38f)) bits &= ~bit;
      float& product = piece[word * kWordGroups + i][2 * half + c];
      product = fmaxf(product + bias * call.score.bias_factor, kLowestProduct);
    }
  }
}

/// Leaves the tile's mask in its products: kMaskedProduct where an entry does not count or lies
/// beyond the last key; finite biases are added, in units of the product.
__device__ inline void apply_mask(const CallArgs& call, uint32_t tile, int key_tile,
                                  WorkItem (&pieces)[kPieces], RowsThatCount& counts) {
  const bool mixed = tile >= kMixedTile;
  const int keys = call.num_keys - key_tile * kTileKeys;
  const bool whole = !mixed && keys >= kTileKeys;
#pragma unroll
  for (int piece = 0; piece < kPieces; ++piece) {
#pragma unroll
    for (int half = 0; half < 2; ++half) counts[piece][half] = whole;
  }
  if (whole) return;
  const int first = key_of(0, 0);
#pragma unroll
  for (int piece = 0; piece < kPieces; ++piece) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int64_t line =
          static_cast<int64_t>(tile - kMixedTile) * kTileRows + row_of(piece, half);
#pragma unroll
      for (int word = 0; word < kTileKeys / kWordKeys; ++word) {
        const int left = keys - word * kWordKeys;
        uint32_t bits = left >= kWordKeys ? ~0u : left <= 0 ? 0u : (1u << left) - 1;
        if (mixed && call.mask.bits != nullptr) {
          bits &= call.mask.bits[line * (kTileKeys / kWordKeys) + word];
        }
        bits = bits >> first & kLaneBits;
        if (mixed && call.mask.biases != nullptr) {
          add_biases(call, call.mask.biases + line * kTileKeys + word * kWordKeys + first, word,
                     half, pieces[piece], bits);
        }
        counts[piece][half] |= bits != 0;
#pragma unroll
        for (int i = 0; i < kWordGroups; ++i) {
#pragma unroll
          for (int c = 0; c < 2; ++c) {
            float& product = pieces[piece][word * kWordGroups + i][2 * half + c];
            if ((bits >> (8 * i + c) & 1) == 0) product = kMaskedProduct;
          }
        }
      }
    }
  }
}

/// x − reference for a product. The large terms cancel before anything is rounded.
__device__ inline float relative_exponent(const ScoreFactors& score, float product,
                                          float reference) {
  const float x = __builtin_fmaf(product, score.exponent_high, -reference);
  return __builtin_fmaf(product, score.exponent_low, x);
}

/// 2^n for whole n; 0 below the normal numbers, and never more than 2^127.
__device__ inline float power_of_two(float n) {
  if (!(n >= -126.0f)) return 0;
  const int exponent = static_cast<int>(n < 127.0f ? n : 127.0f);
  return __builtin_bit_cast(float, (exponent + 127) << 23);
}

}  // namespace attnscope::cuda
