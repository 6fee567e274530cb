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

/// Products of one row half of a piece to entries, in place: logits (−inf where masked), or
/// weights, of rows scaled by `scales` (null: none are).
template <bool kFeatures>
__device__ inline void make_entries(const CallArgs& call, bool logits, const RowScale* scales,
                                    int64_t line, int half, WorkItem& piece) {
  const ScoreFactors& score = call.score;
  const RowScale scale = scales == nullptr || line >= call.rows ? RowScale() : scales[line];
#pragma unroll
  for (int group = 0; group < kGroups; ++group) {
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      float& entry = piece[group][2 * half + c];
      const float product = entry;
      const float x = relative_exponent(score, product, scale.exponent);
      if (logits) {
        entry = product <= kMaskedProduct
                    ? kMasked
                    : __builtin_fmaf(product, score.logit_high, product * score.logit_low);
      } else if (score.kind == ScoreKind::sigmoid) {
        entry = 1.0f / (1.0f + exp2_fast(-x));
      } else if (kFeatures && score.kind == ScoreKind::linear) {
        entry = product <= kMaskedProduct ? 0.0f : product * scale.factor;
      } else {
        entry = exp2_fast(x) * scale.factor;
      }
    }
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

/// Entries of one row half of a piece as they are stored, from element `first` of the output on.
__device__ inline void store_entries(const EmitArgs& args, int64_t first, const WorkItem& piece,
                                     int half) {
  const bool logits = args.logits;
  // Rows of the output begin at whole tiles: every pair of entries is aligned.
  const auto for_each_pair = [&](auto store) {
#pragma unroll
    for (int group = 0; group < kGroups; ++group) {
      store(piece[group][2 * half], piece[group][2 * half + 1], first / 2 + group * 4);
    }
  };
  if (args.encoding == Encoding::f32) {
    auto* const out = static_cast<float2*>(args.out);
    const auto visible = [logits](float x) { return logits || x >= 0x1p-100f ? x : 0.0f; };
    for_each_pair([&](float a, float b, int64_t at) { out[at] = float2{visible(a), visible(b)}; });
  } else if (args.encoding == Encoding::u8_log2) {
    auto* const out = static_cast<uchar2*>(args.out);
    for_each_pair([&](float a, float b, int64_t at) { out[at] = uchar2{code_of(a), code_of(b)}; });
  } else {
    auto* const out = static_cast<ushort2*>(args.out);
    // A power of two: the product is rounded once.
    const float scale = args.encoding == Encoding::f16_scaled ? kF16Scale : 1.0f;
    const auto half_of = [logits, scale](float x) {
      return to_half_bits(logits ? half_logit(x) : x * scale);
    };
    for_each_pair([&](float a, float b, int64_t at) { out[at] = ushort2{half_of(a), half_of(b)}; });
  }
}

/// Entries of a tile that the mask leaves empty: −inf, or zeros in any encoding.
__device__ inline void store_empty(const EmitArgs& args, int row_tile, int key_tile) {
  const bool floats = args.encoding == Encoding::f32;
  const unsigned word = !args.logits ? 0 : floats ? 0xff800000 : 0xfc00fc00;
  const int entries = floats ? 1 : args.encoding == Encoding::u8_log2 ? 4 : 2;  // of a word
  auto* const out = static_cast<unsigned*>(args.out);
  for (int i = static_cast<int>(threadIdx.x) % kThreads; i < kTileRows * kTileKeys / entries;
       i += kThreads) {
    const int64_t line = static_cast<int64_t>(row_tile) * kTileRows + i * entries / kTileKeys;
    const int64_t column =
        static_cast<int64_t>(key_tile - args.first_tile) * kTileKeys + i * entries % kTileKeys;
    if (line < args.call.rows) out[(line * args.stride + column) / entries] = word;
  }
}

/// Grid (groups of Product::kRowTiles row tiles, splits): one block emits a share of the key tiles
/// of its rows.
template <class Product>
__global__ void __launch_bounds__(Product::kBlockThreads, Product::kLeastBlocks)
    emit_rows(EmitArgs args) {
  const int tiles = args.end_tile - args.first_tile;
  const int share = (tiles + static_cast<int>(gridDim.y) - 1) / static_cast<int>(gridDim.y);
  const int begin = args.first_tile + static_cast<int>(blockIdx.y) * share;
  const int end = begin + share < args.end_tile ? begin + share : args.end_tile;
  Product product(args.call, static_cast<int>(blockIdx.x) * Product::kRowTiles, begin, end);
  if (!product.begin()) return;
  const int row_tile = product.row_tile();
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
        make_entries<Product::kFeatures>(args.call, args.logits, args.scales, line, half,
                                         pieces[piece]);
        if (line >= args.call.rows) continue;
        store_entries(args, line * args.stride + column, pieces[piece], half);
      }
    }
  }
}

}  // namespace attnscope::cuda
