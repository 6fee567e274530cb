// Sums of rows over their keys, without their entries ever leaving the registers. Device code.
#pragma once

#include "kernels/cuda/kernel/polynomial_power.h"
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
  bool held = false;  ///< the reference is 0, whatever comes, see kHeldExponent

  RowSums() = default;
  __device__ explicit RowSums(bool row_is_held)
      : reference(row_is_held ? 0 : kNoReference), held(row_is_held) {}

  /// Entries may reach 2^kHeadroom before the reference is moved.
  static constexpr float kHeadroom = 32;
  /// Sums with a reference below this add nothing to a row that float32 resolves (kMaxExponent),
  /// and moving such a reference would round the next one away.
  static constexpr float kLeastReference = -2 * kMaxExponent;

  /// Takes in that the largest product of some keys is `top`, by selections alone where kSelect
  /// says so: the same numbers either way. Unless any lane's reference moves, that is nothing to
  /// do.
  template <bool kSelect>
  __device__ void meet(const ScoreFactors& score, float top) {
    const bool none = top <= kMaskedProduct;  // all are masked
    const bool first = reference < kLeastReference;
    const float most = relative_exponent(score, top, reference);
    // Finite and not kNoReference, however low: a key has counted.
    const float begun = fmaxf(floorf(relative_exponent(score, top, 0)), kNoReference / 2);
    const float moved = held || most <= kHeadroom ? reference : reference + floorf(most);
    const float next = none ? reference : first ? begun : moved;
    if (kSelect || warp_any(!(next == reference))) {
      const float shift = reference - next;
      const double scale = none ? 1.0 : first ? 0.0 : static_cast<double>(power_of_two(shift));
      moment = scale * (moment + static_cast<double>(shift) * sum);
      sum *= scale;
      largest = first && !none ? kMasked : largest + shift;
      reference = next;
    }
    if (!none) largest = larger(largest, relative_exponent(score, top, reference));
  }
};

/// The largest product of a row within a piece. Four chains: a single one would be as long as all
/// the rest of the work.
__device__ inline float largest_product(const WorkItem& piece, int half) {
  // Exponents grow with products, and masked products are the lowest.
  float top[4];
#pragma unroll
  for (int group = 0; group < kGroups; ++group) {
    const float pair = larger(piece[group][2 * half], piece[group][2 * half + 1]);
    top[group % 4] = group < 4 ? pair : larger(top[group % 4], pair);
  }
  return larger(kMaskedProduct, larger(larger(top[0], top[1]), larger(top[2], top[3])));
}

/// Of a lane's 32 entries of a row, every kPolynomialOf-th is made without the unit that makes
/// powers of two: it is that unit that tiles of few channels wait for.
constexpr int kPolynomialOf = 5;

/// How the reference keeps up with the entries of a piece.
enum class Reference {
  branched,  ///< it is moved where it has to be
  selected,  ///< the same by selections alone
  held,      ///< all rows of the piece are held: nothing is to be done, the numbers are the same
};

/// Adds a tile's entries of the two rows of a piece.
template <bool kMoments, bool kPolynomial, Reference kReference>
__device__ inline void add_softmax(const ScoreFactors& score, const WorkItem& piece,
                                   RowSums (&sums)[2]) {
  if constexpr (kReference != Reference::held) {
    float top[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) top[half] = largest_product(piece, half);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      sums[half].meet<kReference == Reference::selected>(score, across_row(top[half], larger));
    }
  }
  float sum[2][2] = {};
  float moment[2] = {};
#pragma unroll
  for (int group = 0; group < kGroups; ++group) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int half = i / 2;
      const float reference = kReference == Reference::held ? 0.0f : sums[half].reference;
      const float x = relative_exponent(score, piece[group][i], reference);
      if (kPolynomial && (2 * group + i % 2) % kPolynomialOf == 0) {
        const Power power = polynomial_power(x);
        sum[half][i % 2] = __builtin_fmaf(power.fraction, power.whole, sum[half][i % 2]);
        if (kMoments) {
          moment[half] = __builtin_fmaf(power.fraction * power.whole, power.x, moment[half]);
        }
      } else {
        const float entry = exp2_fast(x);
        sum[half][i % 2] += entry;
        if (kMoments) moment[half] = __builtin_fmaf(entry, entry > 0 ? x : 0.0f, moment[half]);
      }
    }
  }
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    sums[half].sum += static_cast<double>(sum[half][0] + sum[half][1]);
    if (kMoments) sums[half].moment += static_cast<double>(moment[half]);
  }
}

/// add_softmax for one row half and linear scores, whose entries are the products.
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

/// The sums of a row's four lanes put together, as the first of these lanes writes them.
__device__ inline RowPart whole_row(const RowSums& sums) {
  RowPart part;
  const auto add = [](double a, double b) { return a + b; };
  part.sum = across_row(sums.sum, add);
  part.moment = across_row(sums.moment, add);
  part.reference = sums.reference;
  part.largest = sums.held ? 0.0f : sums.largest;
  part.held = sums.held ? 1 : 0;
  part.any = static_cast<int>(
      across_row(sums.any ? 1u : 0u, [](unsigned a, unsigned b) { return a | b; }));
  return part;
}

/// Writes what a segment has found of the rows of a piece, and begins the next.
__device__ inline void end_segment(const NormArgs& args, int row_tile, int segment, int piece,
                                   RowSums (&sums)[2]) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const RowPart part = whole_row(sums[half]);
    const int row = row_tile * kTileRows + row_of(piece, half);
    const int64_t rows = static_cast<int64_t>(args.call.row_tiles) * kTileRows;
    if (lane_id() % 4 == 0) args.parts[segment * rows + row] = part;
    sums[half] = RowSums(sums[half].held);
  }
}

__device__ inline bool ends_segment(int key_tile, int last_tile) {
  return (key_tile + 1) % kSegmentTiles == 0 || key_tile + 1 == last_tile;
}

/// The first tile from `tile` on in which not all entries count.
__device__ inline int end_of_whole_tiles(const CallArgs& call, int row_tile, int tile,
                                         int last_tile) {
  const int whole = call.num_keys / kTileKeys;
  const int end = whole < last_tile ? whole : last_tile;
  if (call.mask.tiles == nullptr) return tile < end ? end : tile;
  while (tile < end && tile_class(call, row_tile, tile) == kFullTile) ++tile;
  return tile;
}

/// Sums tiles in which all entries count: while one piece's entries are added up, the products of
/// the other are made. The same numbers as tile by tile.
template <bool kMoments, bool kPolynomial, Reference kReference, class Product>
__device__ inline void add_whole_tiles(const NormArgs& args, Product& product, int begin, int end,
                                       int last_tile, RowSums (&sums)[kPieces][2]) {
  const int row_tile = product.row_tile();
  WorkItem pieces[kPieces];
  const auto add = [&](int key_tile, int piece) {
    add_softmax<kMoments, kPolynomial, kReference>(args.call.score, pieces[piece], sums[piece]);
    sums[piece][0].any = sums[piece][1].any = true;
    if (ends_segment(key_tile, last_tile)) {
      end_segment(args, row_tile, key_tile / kSegmentTiles, piece, sums[piece]);
    }
  };
  product.start(0, pieces[0]);
  product.finish(pieces[0]);
  for (int key_tile = begin;; ++key_tile) {
    product.start(1, pieces[1]);
    add(key_tile, 0);
    // Nothing is under way when the loop comes round, or the compiler makes every product wait.
    product.finish(pieces[1]);
    product.leave_tile();
    if (key_tile + 1 == end) break;
    product.start(0, pieces[0]);
    add(key_tile, 1);
    product.finish(pieces[0]);
  }
  add(end - 1, 1);
}

/// Sums a tile of any kind.
template <bool kMoments, bool kPolynomial, class Product>
__device__ inline void add_any_tile(const CallArgs& call, Product& product, int key_tile,
                                    RowSums (&sums)[kPieces][2]) {
  const uint32_t tile = tile_class(call, product.row_tile(), key_tile);
  if (tile == kEmptyTile) {
    product.pass_over(key_tile);
    return;
  }
  WorkItem pieces[kPieces];
  product.compute(key_tile, pieces);
  RowsThatCount counts;
  apply_mask(call, tile, key_tile, pieces, counts);
#pragma unroll
  for (int piece = 0; piece < kPieces; ++piece) {
#pragma unroll
    for (int half = 0; half < 2; ++half) sums[piece][half].any |= counts[piece][half];
    if (Product::kFeatures && call.score.kind == ScoreKind::linear) {
#pragma unroll
      for (int half = 0; half < 2; ++half) add_linear(pieces[piece], half, sums[piece][half]);
    } else {
      add_softmax<kMoments, kPolynomial, Reference::branched>(call.score, pieces[piece],
                                                              sums[piece]);
    }
  }
}

__device__ inline bool is_held(const NormArgs& args, int row_tile, int row) {
  return args.held != nullptr && args.held[static_cast<int64_t>(row_tile) * kTileRows + row] != 0;
}

/// True where all rows of a tile are held; alike in all of its warps, which must go the same way.
__device__ inline bool is_held_tile(const NormArgs& args, int row_tile) {
  bool all = true;
  for (int row = lane_id(); row < kTileRows; row += 32) all &= is_held(args, row_tile, row);
  return !warp_any(!all);
}

/// Grid (groups of Product::kRowTiles row tiles, splits): one block sums `split_segments` segments
/// of keys for each of its tiles of rows.
template <class Product, bool kMoments, bool kPolynomial>
__global__ void __launch_bounds__(Product::kBlockThreads)
    sum_rows(const __grid_constant__ NormArgs args) {
  const CallArgs& call = args.call;
  const int begin = args.first_segment + static_cast<int>(blockIdx.y) * args.split_segments;
  const int end = begin + args.split_segments < args.end_segment ? begin + args.split_segments
                                                                 : args.end_segment;
  const int last_tile = end * kSegmentTiles < call.key_tiles ? end * kSegmentTiles : call.key_tiles;
  Product product(call, static_cast<int>(blockIdx.x) * Product::kRowTiles, begin * kSegmentTiles,
                  last_tile);
  if (!product.begin()) return;
  const int row_tile = product.row_tile();
  RowSums sums[kPieces][2];
#pragma unroll
  for (int piece = 0; piece < kPieces; ++piece) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      sums[piece][half] = RowSums(is_held(args, row_tile, row_of(piece, half)));
    }
  }
  const bool held = Product::kOverlaps && is_held_tile(args, row_tile);
  for (int key_tile = begin * kSegmentTiles; key_tile < last_tile; ++key_tile) {
    if constexpr (Product::kOverlaps) {
      const int whole = end_of_whole_tiles(call, row_tile, key_tile, last_tile);
      if (key_tile < whole) {
        if (held) {
          add_whole_tiles<kMoments, kPolynomial, Reference::held>(args, product, key_tile, whole,
                                                                  last_tile, sums);
        } else {
          add_whole_tiles<kMoments, kPolynomial, Reference::selected>(args, product, key_tile,
                                                                      whole, last_tile, sums);
        }
        key_tile = whole - 1;
        continue;
      }
    }
    add_any_tile<kMoments, kPolynomial>(call, product, key_tile, sums);
    if (!ends_segment(key_tile, last_tile)) continue;
#pragma unroll
    for (int piece = 0; piece < kPieces; ++piece) {
      end_segment(args, row_tile, key_tile / kSegmentTiles, piece, sums[piece]);
    }
  }
}

}  // namespace attnscope::cuda
