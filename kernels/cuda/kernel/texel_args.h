#pragma once

#include <cstdint>

#include "kernels/cuda/kernel/tile_args.h"

namespace attnscope::cuda {

/// Blocks of entries up to this level lie within a warp's rows.
inline constexpr int kMostTexelLevel = 5;

/// The largest entry and the mean of squares of 2^level entries, cut on multiples counted from the
/// first row of the call and from key 0. Device pointers.
struct TexelArgs {
  CallArgs call;
  const RowScale* scales = nullptr;  ///< [rows]; null for logits and sigmoid
  int first_tile = 0;                ///< key tiles [first_tile, end_tile)
  int end_tile = 0;
  bool logits = false;
  int level = 0;
  float* max = nullptr;   ///< [rows / 2^level, stride], from key first_tile · kTileKeys on
  float* mean = nullptr;  ///< the same; null on level 0, where it is the entry itself
  int64_t stride = 0;
  /// Pairs of half floats as a texture holds them, of the texels [first_texel, end_texel) counted
  /// from key 0: [rows / 2^level, pairs_stride]; null: not wanted.
  void* pairs = nullptr;
  int64_t pairs_stride = 0;
  int first_texel = 0;
  int end_texel = 0;
};

}  // namespace attnscope::cuda
