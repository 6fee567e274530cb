// Entries of a rectangle in their stored form. Device code.
#pragma once

#include "core/stream/weight_code.h"
#include "kernels/cuda/kernel/tile_entries.h"

namespace attnscope::cuda {

__device__ inline unsigned char code_of(float weight) {
  constexpr auto kPerOctave = static_cast<float>((kCodeMax - 1) / kCodeOctaves);
  constexpr auto kMost = static_cast<float>(kCodeMax);
  if (!(weight >= 0x1p-24f)) return 0;
  const float exact = __builtin_fmaf(log2_fast(weight), kPerOctave, kMost);
  return static_cast<unsigned char>(rintf(fminf(fmaxf(exact, 1.0f), kMost)));
}

/// Finite logits stay finite, since −inf says masked.
__device__ inline float half_logit(float logit) {
  return logit == kMasked ? logit : fminf(fmaxf(logit, -kF16Max), kF16Max);
}

/// The kinds of entries that products become; all products of a launch become one kind.
enum class EntryKind { logit, softmax, sigmoid, linear };

/// `scale` is of the entry's row, and of no account to logits and sigmoid.
template <EntryKind kKind>
__device__ inline float entry_of(const ScoreFactors& score, float product, const RowScale& scale) {
  if constexpr (kKind == EntryKind::logit) {
    return product <= kMaskedProduct
               ? kMasked
               : __builtin_fmaf(product, score.logit_high, product * score.logit_low);
  } else if constexpr (kKind == EntryKind::linear) {
    return product <= kMaskedProduct ? 0.0f : product * scale.factor;
  } else if constexpr (kKind == EntryKind::sigmoid) {
    return reciprocal_fast(1.0f + exp2_fast(-relative_exponent(score, product, 0)));
  } else {
    return exp2_fast(relative_exponent(score, product, scale.exponent)) * scale.factor;
  }
}

/// The scales of this lane's rows of a tile.
using RowScales = RowScale[kPieces][2];

/// `scales` null: rows have none.
__device__ inline void load_row_scales(const CallArgs& call, const RowScale* scales, int row_tile,
                                       RowScales& to) {
#pragma unroll
  for (int piece = 0; piece < kPieces; ++piece) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int64_t line = static_cast<int64_t>(row_tile) * kTileRows + row_of(piece, half);
      to[piece][half] = scales == nullptr || line >= call.rows ? RowScale() : scales[line];
    }
  }
}

template <EntryKind kKind>
__device__ inline void make_entries_of(const ScoreFactors& score, const RowScale& scale, int half,
                                       WorkItem& piece) {
#pragma unroll
  for (int group = 0; group < kGroups; ++group) {
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      float& entry = piece[group][2 * half + c];
      entry = entry_of<kKind>(score, entry, scale);
    }
  }
}

/// Products of one row half of a piece to entries, in place: logits (−inf where masked), or
/// weights. The kind is chosen out here: a choice an entry would keep the compiler from having
/// several entries under way at once, one a tile from having them in the registers they are in.
template <bool kFeatures>
__device__ inline void make_entries(const ScoreFactors& score, bool logits, const RowScale& scale,
                                    int half, WorkItem& piece) {
  if (logits) {
    make_entries_of<EntryKind::logit>(score, scale, half, piece);
  } else if (score.kind == ScoreKind::sigmoid) {
    make_entries_of<EntryKind::sigmoid>(score, scale, half, piece);
  } else if (kFeatures && score.kind == ScoreKind::linear) {
    make_entries_of<EntryKind::linear>(score, scale, half, piece);
  } else {
    make_entries_of<EntryKind::softmax>(score, scale, half, piece);
  }
}

/// Products of a tile with its mask; of an empty one, nothing but masked ones.
template <class Product>
__device__ inline void masked_products(const CallArgs& call, Product& product, int row_tile,
                                       int key_tile, WorkItem (&pieces)[kPieces]) {
  const uint32_t tile = tile_class(call, row_tile, key_tile);
  if (tile == kEmptyTile) {
    product.pass_over(key_tile);
    fill(pieces, kMaskedProduct);
    return;
  }
  product.compute(key_tile, pieces);
  RowsThatCount counts;
  apply_mask(call, tile, key_tile, pieces, counts);
}

/// Stores the entries of one row half of a piece, two neighbours at a time, as pair_of(entry,
/// entry) has them, from element `first` of the output on. Rows of the output begin at whole tiles:
/// every pair is aligned.
template <class PairOf>
__device__ inline void store_pairs(const EmitArgs& args, int64_t first, const WorkItem& piece,
                                   int half, PairOf pair_of) {
  using Pair = decltype(pair_of(0.0f, 0.0f));
  auto* const out = static_cast<Pair*>(args.out) + first / 2;
#pragma unroll
  for (int group = 0; group < kGroups; ++group) {
    out[group * 4] = pair_of(piece[group][2 * half], piece[group][2 * half + 1]);
  }
}

/// Stores the entries of one row half of a piece in the launch's encoding, as store_pairs does.
__device__ inline void store_entries(const EmitArgs& args, int64_t first, const WorkItem& piece,
                                     int half) {
  const bool logits = args.logits;
  if (args.encoding == Encoding::f32) {
    const auto visible = [logits](float x) { return logits || x >= 0x1p-100f ? x : 0.0f; };
    store_pairs(args, first, piece, half, [&](float a, float b) {
      return float2{visible(a), visible(b)};
    });
  } else if (args.encoding == Encoding::u8_log2) {
    store_pairs(args, first, piece, half, [](float a, float b) {
      return uchar2{code_of(a), code_of(b)};
    });
  } else if (logits) {
    store_pairs(args, first, piece, half, [](float a, float b) {
      return ushort2{to_half_bits(half_logit(a)), to_half_bits(half_logit(b))};
    });
  } else {
    // A power of two: the product is rounded once.
    const float scale = args.encoding == Encoding::f16_scaled ? kF16Scale : 1.0f;
    store_pairs(args, first, piece, half, [scale](float a, float b) {
      return ushort2{to_half_bits(a * scale), to_half_bits(b * scale)};
    });
  }
}

/// Entries of a tile that the mask leaves empty: −inf, or zeros in any encoding.
__device__ inline void store_empty(const EmitArgs& args, int row_tile, int key_tile) {
  const bool floats = args.encoding == Encoding::f32;
  const unsigned word = !args.logits ? 0 : floats ? 0xff800000 : 0xfc00fc00;
  // A word has 2^shift entries.
  const int shift = floats ? 0 : args.encoding == Encoding::u8_log2 ? 2 : 1;
  auto* const out = static_cast<unsigned*>(args.out);
  for (int i = static_cast<int>(threadIdx.x) % kThreads; i < kTileRows * kTileKeys >> shift;
       i += kThreads) {
    const int entry = i << shift;
    const int64_t line = static_cast<int64_t>(row_tile) * kTileRows + entry / kTileKeys;
    const int64_t column =
        static_cast<int64_t>(key_tile - args.first_tile) * kTileKeys + entry % kTileKeys;
    if (line < args.call.rows) out[(line * args.stride + column) >> shift] = word;
  }
}

/// Grid (groups of Product::kRowTiles row tiles, splits): one block emits a share of the key tiles
/// of its rows.
template <class Product>
__global__ void __launch_bounds__(Product::kBlockThreads)
    emit_rows(const __grid_constant__ EmitArgs args) {
  const int tiles = args.end_tile - args.first_tile;
  const int share = (tiles + static_cast<int>(gridDim.y) - 1) / static_cast<int>(gridDim.y);
  const int begin = args.first_tile + static_cast<int>(blockIdx.y) * share;
  const int end = begin + share < args.end_tile ? begin + share : args.end_tile;
  Product product(args.call, static_cast<int>(blockIdx.x) * Product::kRowTiles, begin, end);
  if (!product.begin()) return;
  const int row_tile = product.row_tile();
  RowScales scales;
  load_row_scales(args.call, args.scales, row_tile, scales);
  for (int key_tile = begin; key_tile < end; ++key_tile) {
    const uint32_t tile = tile_class(args.call, row_tile, key_tile);
    // Not as masked_products does it: nothing but products may come into the registers that wgmma
    // writes, or the compiler lets each product wait for the one before.
    if (tile == kEmptyTile) {
      product.pass_over(key_tile);
      store_empty(args, row_tile, key_tile);
      continue;
    }
    WorkItem pieces[kPieces];
    product.compute(key_tile, pieces);
    RowsThatCount counts;
    apply_mask(args.call, tile, key_tile, pieces, counts);
    const int64_t column =
        static_cast<int64_t>(key_tile - args.first_tile) * kTileKeys + key_of(0, 0);
#pragma unroll
    for (int piece = 0; piece < kPieces; ++piece) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int64_t line = static_cast<int64_t>(row_tile) * kTileRows + row_of(piece, half);
        make_entries<Product::kFeatures>(args.call.score, args.logits, scales[piece][half], half,
                                         pieces[piece]);
        if (line >= args.call.rows) continue;
        store_entries(args, line * args.stride + column, pieces[piece], half);
      }
    }
  }
}

}  // namespace attnscope::cuda
