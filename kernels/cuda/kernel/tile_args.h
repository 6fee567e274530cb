#pragma once

#include <cstdint>

#include "core/stream/weight_code.h"

namespace attnscope::cuda {

/// A tile of the map is kTileRows query rows by kTileKeys keys, both cut on multiples counted from
/// the first row of the call and from key 0. It belongs to kThreads threads. Each of their kWarps
/// warps holds kPieces pieces of kPieceRows rows that follow one another, each as the accumulators
/// of the m16n8 tensor-core instructions: `kGroups` groups of 8 keys, in which lane l has the
/// entries (row l/4, keys 2·(l%4) and + 1) and the same of row l/4 + 8.
inline constexpr int kTileRows = 128;
inline constexpr int kTileKeys = 128;
inline constexpr int kPieceRows = 16;
inline constexpr int kPieces = 2;
inline constexpr int kGroups = kTileKeys / 8;
inline constexpr int kWarps = kTileRows / (kPieceRows * kPieces);
inline constexpr int kThreads = kWarps * 32;

/// How rows of 16-bit tensors lie in device memory where kernels fetch them themselves: tile by
/// tile as shared memory is to have them, [tiles, chunks, kTileRows, kChunkChannels]. A row's 64
/// channels are eight units of 16 bytes; row r has unit u at place u ^ (r % 8) (the tensor cores'
/// 128-byte swizzle), so that whoever reads the same unit of eight rows meets every bank once.
/// Of a tile of queries the first pieces of all warps come before the second ones (query_place): 64
/// rows that follow one another here are what one m64 instruction of a warpgroup takes.
inline constexpr int kChunkChannels = 64;
inline constexpr int kUnitBytes = 16;
inline constexpr int kChunkRowBytes = kChunkChannels * 2;
inline constexpr int kChunkBytes = kTileRows * kChunkRowBytes;
static_assert(kTileRows == kTileKeys);

/// Where a tile of queries has its row, see kChunkChannels.
constexpr int query_place(int row) {
  const int piece = row / kPieceRows;
  return (piece % kPieces * kWarps + piece / kPieces) * kPieceRows + row % kPieceRows;
}

/// Sums over keys are formed in float32 within a thread's part of a tile, then in double within a
/// segment of this many tiles, then over segments in an order that their number alone decides:
/// whatever the launch, the same bits.
inline constexpr int kSegmentTiles = 8;
inline constexpr int kSegmentKeys = kSegmentTiles * kTileKeys;

/// Whoever has an exponent beyond this (in base 2) cannot be told apart in float32.
inline constexpr float kMaxExponent = 0x1p22f;
/// The reference of a row in which no key has counted yet.
inline constexpr float kNoReference = -0x1p30f;
/// Rows whose exponents are known to lie within ± this are held: the reference of their sums is 0.
/// Their entries, and sums of as many as there may be, are normal numbers of float32, and an entry
/// that the mask leaves out, for which the polynomial yields 2^-126, is nothing to any of them.
inline constexpr float kHeldExponent = 80;

/// The scores that kernels tell apart: the linear ones differ in how features are packed alone.
enum class ScoreKind : int { softmax, sigmoid, linear };

/// How products become exponents (base 2) and logits: product·high + product·low.
struct ScoreFactors {
  ScoreKind kind = ScoreKind::softmax;
  float exponent_high = 0, exponent_low = 0;  ///< scale·log₂(e)
  float logit_high = 0, logit_low = 0;        ///< scale
  float bias_factor = 0;                      ///< 1 / scale
};

/// The tiles of a call under its mask, see MaskTiles. Device pointers.
struct TileMaskView {
  /// [row tiles, stride] of the key tiles from `first` on: kFullTile, kEmptyTile, or kMixedTile +
  /// the number of the tile's bits (or biases); null: every tile is full.
  const uint32_t* tiles = nullptr;
  int first = 0;
  int stride = 0;
  /// [mixed tiles, kTileRows, kTileKeys / 32]: bit k of word w keeps key 32·w + k.
  const uint32_t* bits = nullptr;
  /// [mixed tiles, kTileRows, kTileKeys]; null where all biases are 0 or −inf.
  const float* biases = nullptr;
};
inline constexpr uint32_t kFullTile = 0;
inline constexpr uint32_t kEmptyTile = 1;
inline constexpr uint32_t kMixedTile = 2;

/// Query rows of a call that meet all keys of a head. Rows are padded to whole tiles, channels to
/// `padded_dim`, keys to whole tiles, all with zeros. Device pointers.
struct CallArgs {
  /// [row tiles · kTileRows, padded_dim], or in tiles, see kChunkChannels.
  const void* queries = nullptr;
  const void* keys = nullptr;  ///< [key tiles · kTileKeys, padded_dim], or in tiles
  /// Products of the key tiles from `products_first` on, where cuBLAS made them:
  /// [row tiles · kTileRows, products_stride].
  const float* products = nullptr;
  int64_t products_stride = 0;
  int products_first = 0;
  int rows = 0;
  int num_keys = 0;
  int padded_dim = 0;
  int row_tiles = 0;
  int key_tiles = 0;
  ScoreFactors score;
  TileMaskView mask;
};

/// The sums that one segment of keys adds to a row.
struct RowPart {
  double sum = 0;     ///< Σ 2^(x − reference); of linear scores Σ φ(q)·φ(k)
  double moment = 0;  ///< Σ 2^(x − reference)·(x − reference)
  float reference = kNoReference;
  float largest = -__builtin_inff();  ///< x − reference; 0 of held rows; not of linear scores
  int32_t any = 0;                    ///< whether the mask lets any key count
  int32_t held = 0;                   ///< whether the row is held, see kHeldExponent
};

/// Where weights are to be scaled: weight = 2^(x − exponent)·factor, or product·factor for linear
/// scores.
struct RowScale {
  float exponent = 0;
  float factor = 0;
};

struct NormArgs {
  CallArgs call;
  int first_segment = 0;  ///< the segments [first_segment, end_segment) are summed …
  int end_segment = 0;
  int split_segments = 1;    ///< … this many by one thread block
  RowPart* parts = nullptr;  ///< [segments of all keys, row tiles · kTileRows]
  /// [row tiles · kTileRows]: not 0 where a row is held; null where none is.
  const int32_t* held = nullptr;
};

struct EmitArgs {
  CallArgs call;
  const RowScale* scales = nullptr;  ///< [rows]; null for logits and sigmoid
  int first_tile = 0;                ///< key tiles [first_tile, end_tile)
  int end_tile = 0;
  bool logits = false;
  Encoding encoding = Encoding::f32;
  void* out = nullptr;  ///< [row tiles · kTileRows, stride], from key first_tile · kTileKeys on
  int64_t stride = 0;   ///< elements
};

}  // namespace attnscope::cuda
