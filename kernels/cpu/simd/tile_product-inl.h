// Products of row groups with key blocks by a tile unit. Whoever includes this file (again and
// again) defines
//   ATTNSCOPE_DOT_NAMESPACE   a namespace for this kind
//   ATTNSCOPE_TILES           the class of tile_registers-inl.h
// between HWY_BEFORE_NAMESPACE() and HWY_AFTER_NAMESPACE().
//
// A step is 32 rows with a panel of 32 keys: four tiles of sums, two tiles of rows, two of keys.
// Its instructions can be given out in pieces, so that they stand among those of others
// (tile_runs-inl.h).

namespace attnscope::HWY_NAMESPACE::ATTNSCOPE_DOT_NAMESPACE {

/// Which parts of q and k are multiplied, the smallest products first; neighbours share a side, so
/// that one load serves two. Of three parts, products below 2⁻²⁴ of the whole are left out.
struct PartProducts {
  struct Pair {
    int8_t q, k;
  };
  const Pair* pairs;
  int64_t count;

  static PartProducts of(int64_t parts) {
    static constexpr Pair kOne[] = {{0, 0}};
    static constexpr Pair kTwo[] = {{1, 1}, {1, 0}, {0, 0}, {0, 1}};
    static constexpr Pair kThree[] = {{2, 0}, {1, 0}, {1, 1}, {0, 1}, {0, 2}, {0, 0}};
    return parts == 1   ? PartProducts{kOne, 1}
           : parts == 2 ? PartProducts{kTwo, 4}
                        : PartProducts{kThree, 6};
  }
};

/// Pieces that a step's instructions are divided into: products in the first ones, and sums are
/// stored in the last, when they are there.
inline constexpr int kStepPieces = kTileUnitRows / 2;
inline constexpr int kStoringPieces = 4;
inline constexpr int kTurnPieces = kStepPieces - kStoringPieces - 1;

/// A quarter of a step's finished sums to rows of kPanelKeys floats that lie `stride` floats apart.
template <int kQuarter>
HWY_INLINE void store_sums(const ATTNSCOPE_TILES& tiles, float* out, int64_t stride) {
  tiles.template store<kQuarter>(out + kQuarter / 2 * kTileSide * stride + kQuarter % 2 * kTileSide,
                                 stride * 4);
}

HWY_INLINE void store_all_sums(const ATTNSCOPE_TILES& tiles, float* out, int64_t stride) {
  store_sums<0>(tiles, out, stride);
  store_sums<1>(tiles, out, stride);
  store_sums<2>(tiles, out, stride);
  store_sums<3>(tiles, out, stride);
}

HWY_INLINE void clear_sums(ATTNSCOPE_TILES& tiles) {
  tiles.template zero<0>();
  tiles.template zero<1>();
  tiles.template zero<2>();
  tiles.template zero<3>();
}

/// The tile instructions of one step after the other, in turns of four multiplications.
class StepProduct {
 public:
  /// Pieces that store nothing are numbers, not types: compilers take long over each of these.
  static constexpr bool kIsLoop = true;

  StepProduct(int64_t steps, int64_t parts, ATTNSCOPE_TILES& tiles)
      : pairs_(steps / parts), tiles_(tiles) {
    const PartProducts products = PartProducts::of(parts);
    for (int64_t step = 0; step < pairs_ / kTileSide; ++step) {
      for (int64_t i = 0; i < products.count; ++i) {
        const PartProducts::Pair pair = products.pairs[i];
        turns_[count_++] = {pair.q * kTileUnitRows * pairs_ + step * kTileSide,
                            (pair.k * pairs_ + step * kTileSide) * kPanelKeys,
                            i == 0 || products.pairs[i - 1].q != pair.q,
                            i == 0 || products.pairs[i - 1].k != pair.k};
      }
    }
    // The first at once, so that sums are ready early.
    for (int64_t piece = 0; piece < kStepPieces; ++piece) {
      until_[piece] =
          piece + 1 < kTurnPieces ? HWY_MIN(count_, piece * count_ / kTurnPieces + 1) : count_;
    }
  }

  /// q: rows of a step [parts, kTileUnitRows, pairs]; k: a panel [parts, pairs, kPanelKeys].
  HWY_INLINE void begin(const float* q, const float* k) {
    q_ = q;
    k_ = k;
    turn_ = 0;
    clear_sums(tiles_);
  }

  /// The products of this piece and of those before it that have not been done yet.
  HWY_INLINE void multiply_until(int piece) {
    for (; turn_ < until_[piece]; ++turn_) multiply(turns_[turn_]);
  }

  template <int kPiece>
  HWY_INLINE void piece(float* out, int64_t stride) {
    multiply_until(kPiece);
    if constexpr (kPiece >= kStepPieces - kStoringPieces) {
      store_sums<kPiece - (kStepPieces - kStoringPieces)>(tiles_, out, stride);
    }
  }

  /// Multiplies the turns that are left of the step that has begun, and stores its sums.
  HWY_INLINE void finish(float* out, int64_t stride) {
    for (; turn_ < count_; ++turn_) multiply(turns_[turn_]);
    store_all_sums(tiles_, out, stride);
  }

 private:
  /// Where the operands lie, and whether they are others than those of the turn before.
  struct Turn {
    int64_t q, k;
    bool load_q, load_k;
  };

  HWY_INLINE void multiply(const Turn& t) {
    const float* const q = q_ + t.q;
    const float* const k = k_ + t.k;
    if (t.load_q) {
      tiles_.template load<4>(q, pairs_ * 4);
      tiles_.template load<5>(q + kTileSide * pairs_, pairs_ * 4);
    }
    if (t.load_k) {
      tiles_.template load<6>(k, kPanelKeys * 4);
      tiles_.template load<7>(k + kTileSide, kPanelKeys * 4);
    }
    tiles_.template multiply<0, 4, 6>();
    tiles_.template multiply<1, 4, 7>();
    tiles_.template multiply<2, 5, 6>();
    tiles_.template multiply<3, 5, 7>();
  }

  const int64_t pairs_;
  int64_t count_ = 0;
  int64_t turn_ = 0;
  int64_t until_[kStepPieces];  ///< turns that are done after each piece
  Turn turns_[kMaxTileDim / 2 / kTileSide * 6];
  ATTNSCOPE_TILES& tiles_;
  const float* q_ = nullptr;
  const float* k_ = nullptr;
};

/// StepProduct for one part and a number of turns that is known: nothing is looked up, and
/// multiplications are strewn one by one. Its sums are those of StepProduct.
template <int kTurns>
class FixedStepProduct {
 public:
  static constexpr bool kIsLoop = false;

  FixedStepProduct(int64_t steps, int64_t parts, ATTNSCOPE_TILES& tiles) : tiles_(tiles) {
    (void)steps;
    (void)parts;
    HWY_DASSERT(serves(steps, parts));
  }

  static bool serves(int64_t steps, int64_t parts) { return parts == 1 && steps == kPairs; }

  HWY_INLINE void begin(const float* q, const float* k) {
    q_ = q;
    k_ = k;
    clear_sums(tiles_);
  }

  template <int kPiece>
  HWY_INLINE void piece(float* out, int64_t stride) {
    constexpr int kDots = 4 * kTurns;
    constexpr int kBegin = HWY_MIN(kDots, kDots * kPiece / kTurnPieces);
    constexpr int kEnd = HWY_MIN(kDots, kDots * (kPiece + 1) / kTurnPieces);
    multiply_from<kBegin, kEnd>();
    if constexpr (kPiece >= kStepPieces - kStoringPieces) {
      store_sums<kPiece - (kStepPieces - kStoringPieces)>(tiles_, out, stride);
    }
  }

  HWY_INLINE void finish(float* out, int64_t stride) {
    multiply_from<0, 4 * kTurns>();
    store_all_sums(tiles_, out, stride);
  }

 private:
  static constexpr int64_t kPairs = kTurns * kTileSide;

  template <int kDot, int kEnd>
  HWY_INLINE void multiply_from() {
    if constexpr (kDot < kEnd) {
      constexpr int64_t kStep = kDot / 4 * kTileSide;
      const float* const q = q_ + kStep;
      const float* const k = k_ + kStep * kPanelKeys;
      if constexpr (kDot % 4 == 0) {
        tiles_.template load<4>(q, kPairs * 4);
        tiles_.template load<6>(k, kPanelKeys * 4);
        tiles_.template multiply<0, 4, 6>();
      } else if constexpr (kDot % 4 == 1) {
        tiles_.template load<7>(k + kTileSide, kPanelKeys * 4);
        tiles_.template multiply<1, 4, 7>();
      } else if constexpr (kDot % 4 == 2) {
        tiles_.template load<5>(q + kTileSide * kPairs, kPairs * 4);
        tiles_.template multiply<2, 5, 6>();
      } else {
        tiles_.template multiply<3, 5, 7>();
      }
      multiply_from<kDot + 1, kEnd>();
    }
  }

  ATTNSCOPE_TILES& tiles_;
  const float* q_ = nullptr;
  const float* k_ = nullptr;
};

/// CpuKernels::Products::raw.
void multiply_block(const ProductBlock& block) {
  ATTNSCOPE_TILES tiles;
  StepProduct product(block.steps, block.parts, tiles);
  for (int64_t panel = 0; panel < kBlockPanels; ++panel) {
    if ((block.panels >> panel & 1u) == 0) continue;
    const float* k = block.k + panel * block.steps * kPanelKeys;
    for (int64_t row = 0; row < block.rows; row += kTileUnitRows) {
      product.begin(block.q + row * block.steps, k);
      float* const out = block.out + row * block.out_stride + panel * kPanelKeys;
      product.finish(out, block.out_stride);
    }
  }
}

/// CpuKernels::Products::spin: four independent sums, as in a step.
double spin_dot(int64_t iterations, float* sink) {
  alignas(64) float operand[kTileSide * kTileSide];
  for (float& x : operand) x = sink[0];
  ATTNSCOPE_TILES tiles;
  tiles.template zero<0>();
  tiles.template zero<1>();
  tiles.template zero<2>();
  tiles.template zero<3>();
  tiles.template load<4>(operand, kTileSide * 4);
  tiles.template load<5>(operand, kTileSide * 4);
  tiles.template load<6>(operand, kTileSide * 4);
  tiles.template load<7>(operand, kTileSide * 4);
  for (int64_t i = 0; i < iterations; ++i) {
    tiles.template multiply<0, 4, 6>();
    tiles.template multiply<1, 4, 7>();
    tiles.template multiply<2, 5, 6>();
    tiles.template multiply<3, 5, 7>();
  }
  tiles.template store<0>(operand, kTileSide * 4);
  for (int64_t lane = 0; lane < kTileSide; ++lane) sink[lane] = operand[lane];
  constexpr double kOperations = 4.0 * 2 * 2 * kTileSide * kTileSide * kTileSide;
  return kOperations * static_cast<double>(iterations);
}

}  // namespace attnscope::HWY_NAMESPACE::ATTNSCOPE_DOT_NAMESPACE
