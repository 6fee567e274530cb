// Sums of rows over their keys, without their entries ever leaving the registers. Device code.
#pragma once

#include "kernels/cuda/kernel/tile_entries.h"

namespace attnscope::cuda {

/// Combines what the four lanes that share a row hold.
template <typename T, typename Combine>
__device__ inline T across_row(T value, Combine combine) {
  value = combine(value, shuffle_xor(value, 1));
  return combine(value, shuffle_xor(value, 2));
}
__device__ inline float larger(float a, float b) { return fmaxf(a, b); }

/// One row within a segment, as one of its four lanes sees it. The reference is the same in all
/// four: a whole number near the largest exponent so far, so that sums of entries 2^(x − reference)
/// neither overflow nor lose what counts; moving it scales by a power of two.
struct RowSums {
  double sum = 0;
  double moment = 0;
  float reference = kNoReference;
  float largest = kMasked;  ///< x − reference
  bool any = false;

  /// Entries may reach 2^kHeadroom before the reference is moved.
  static constexpr float kHeadroom = 32;
  /// What has a reference below this adds nothing to a row that float32 resolves (kMaxExponent),
  /// and moving such a reference would round the next one away.
  static constexpr float kLeastReference = -2 * kMaxExponent;

  __device__ void begin(float first) {
    sum = 0;
    moment = 0;
    // Finite and not kNoReference, however low: a key has counted.
    reference = fmaxf(first, kNoReference / 2);
    largest = kMasked;
  }

  __device__ void move(float next) {
    const float shift = reference - next;
    const auto scale = static_cast<double>(power_of_two(shift));
    moment = scale * (moment + static_cast<double>(shift) * sum);
    sum *= scale;
    largest += shift;
    reference = next;
  }
};

/// Adds a tile's entries of one row half of a piece.
template <bool kMoments>
__device__ inline void add_softmax(const ScoreFactors& score, const WorkItem& piece, int half,
                                   RowSums& sums) {
  // Exponents grow with products, and masked products are the lowest.
  float top = kMaskedProduct;
#pragma unroll
  for (int group = 0; group < kGroups; ++group) {
#pragma unroll
    for (int c = 0; c < 2; ++c) top = larger(top, piece[group][2 * half + c]);
  }
  top = across_row(top, larger);
  if (top <= kMaskedProduct) return;
  if (sums.reference < RowSums::kLeastReference) {
    sums.begin(floorf(relative_exponent(score, top, 0)));
  } else {
    const float most = relative_exponent(score, top, sums.reference);
    if (!(most <= RowSums::kHeadroom)) sums.move(sums.reference + floorf(most));
  }
  sums.largest = larger(sums.largest, relative_exponent(score, top, sums.reference));
  float tile_sum = 0;
  float tile_moment = 0;
#pragma unroll
  for (int group = 0; group < kGroups; ++group) {
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      const float x = relative_exponent(score, piece[group][2 * half + c], sums.reference);
      const float entry = exp2_fast(x);
      tile_sum += entry;
      if (kMoments && entry > 0) tile_moment = __builtin_fmaf(entry, x, tile_moment);
    }
  }
  sums.sum += static_cast<double>(tile_sum);
  if (kMoments) sums.moment += static_cast<double>(tile_moment);
}

/// The same for linear scores, whose entries are the products.
__device__ inline void add_linear(const WorkItem& piece, int half, RowSums& sums) {
  float tile_sum = 0;
#pragma unroll
  for (int group = 0; group < kGroups; ++group) {
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      const float entry = piece[group][2 * half + c];
      if (entry > kMaskedProduct) tile_sum += entry;
    }
  }
  sums.reference = 0;
  sums.sum += static_cast<double>(tile_sum);
}

/// What the four lanes of a row found, as the first of them writes it.
__device__ inline RowPart whole_row(const RowSums& sums) {
  RowPart part;
  const auto add = [](double a, double b) { return a + b; };
  part.sum = across_row(sums.sum, add);
  part.moment = across_row(sums.moment, add);
  part.reference = sums.reference;
  part.largest = sums.largest;
  part.any = static_cast<int>(
      across_row(sums.any ? 1u : 0u, [](unsigned a, unsigned b) { return a | b; }));
  return part;
}

/// Grid (groups of Product::kRowTiles row tiles, splits): one block sums `split_segments` segments
/// of keys for each of its tiles of rows.
template <class Product, bool kMoments>
__global__ void __launch_bounds__(Product::kBlockThreads, Product::kLeastBlocks)
    sum_rows(NormArgs args) {
  const CallArgs& call = args.call;
  const int begin = args.first_segment + static_cast<int>(blockIdx.y) * args.split_segments;
  const int end = begin + args.split_segments < args.end_segment ? begin + args.split_segments
                                                                 : args.end_segment;
  const int last_tile = end * kSegmentTiles < call.key_tiles ? end * kSegmentTiles : call.key_tiles;
  Product product(call, static_cast<int>(blockIdx.x) * Product::kRowTiles, begin * kSegmentTiles,
                  last_tile);
  if (!product.begin()) return;
  const int row_tile = product.row_tile();
  for (int segment = begin; segment < end; ++segment) {
    RowSums sums[kPieces][2];
    const int first = segment * kSegmentTiles;
    const int stop = first + kSegmentTiles < last_tile ? first + kSegmentTiles : last_tile;
    for (int key_tile = first; key_tile < stop; ++key_tile) {
      const uint32_t tile = tile_class(call, row_tile, key_tile);
      if (tile == kEmptyTile) {
        product.pass_over(key_tile);
        continue;
      }
      WorkItem pieces[kPieces];
      product.compute(key_tile, pieces);
      RowsThatCount counts;
      apply_mask(call, tile, key_tile, pieces, counts);
#pragma unroll
      for (int piece = 0; piece < kPieces; ++piece) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          RowSums& row_sums = sums[piece][half];
          row_sums.any |= counts[piece][half];
          if (Product::kFeatures && call.score.kind == ScoreKind::linear) {
            add_linear(pieces[piece], half, row_sums);
          } else {
            add_softmax<kMoments>(call.score, pieces[piece], half, row_sums);
          }
        }
      }
    }
#pragma unroll
    for (int piece = 0; piece < kPieces; ++piece) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const RowPart part = whole_row(sums[piece][half]);
        const int row = row_tile * kTileRows + row_of(piece, half);
        const int64_t rows = static_cast<int64_t>(call.row_tiles) * kTileRows;
        if (lane_id() % 4 == 0) args.parts[segment * rows + row] = part;
      }
    }
  }
}

}  // namespace attnscope::cuda
