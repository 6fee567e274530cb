// Products of row groups with key blocks by a tile unit, and their softmax epilogue. Whoever
// includes this file (again and again) defines
//   ATTNSCOPE_DOT_NAMESPACE   a namespace for this kind
//   ATTNSCOPE_TILES           the class of tile_registers-inl.h
// between HWY_BEFORE_NAMESPACE() and HWY_AFTER_NAMESPACE().
//
// A step is 32 rows with a panel of 32 keys: four tiles of sums, two tiles of rows, two of keys.
// While one step's sums become entries, the tile unit multiplies the next one: tile instructions
// are strewn among the vector ones, and the sums of two steps lie in two buffers of 4 KiB.

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

/// The tile instructions of one step after the other, in turns of four multiplications.
class StepProduct {
 public:
  StepProduct(const ProductBlock& block, ATTNSCOPE_TILES& tiles)
      : pairs_(block.steps / block.parts), tiles_(tiles) {
    const PartProducts products = PartProducts::of(block.parts);
    for (int64_t step = 0; step < pairs_ / kTileSide; ++step) {
      for (int64_t i = 0; i < products.count; ++i) {
        const PartProducts::Pair parts = products.pairs[i];
        turns_[count_++] = {parts.q * kTileUnitRows * pairs_ + step * kTileSide,
                            (parts.k * pairs_ + step * kTileSide) * kPanelKeys,
                            i == 0 || products.pairs[i - 1].q != parts.q,
                            i == 0 || products.pairs[i - 1].k != parts.k};
      }
    }
  }

  /// Turns of a step.
  int64_t turns() const { return count_; }

  /// q: rows of a step [parts, kTileUnitRows, pairs]; k: a panel [parts, pairs, kPanelKeys].
  HWY_INLINE void begin(const float* q, const float* k) {
    q_ = q;
    k_ = k;
    tiles_.template zero<0>();
    tiles_.template zero<1>();
    tiles_.template zero<2>();
    tiles_.template zero<3>();
  }

  HWY_INLINE void multiply(int64_t turn) {
    const Turn& t = turns_[turn];
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

  /// A quarter of the finished sums to rows of kPanelKeys floats that lie `stride` floats apart.
  HWY_INLINE void store(int quarter, float* out, int64_t stride) const {
    float* const at = out + quarter / 2 * kTileSide * stride + quarter % 2 * kTileSide;
    switch (quarter) {
      case 0:
        return tiles_.template store<0>(at, stride * 4);
      case 1:
        return tiles_.template store<1>(at, stride * 4);
      case 2:
        return tiles_.template store<2>(at, stride * 4);
      default:
        return tiles_.template store<3>(at, stride * 4);
    }
  }

 private:
  /// Where the operands lie, and whether they are others than those of the turn before.
  struct Turn {
    int64_t q, k;
    bool load_q, load_k;
  };

  const int64_t pairs_;
  int64_t count_ = 0;
  Turn turns_[kMaxTileDim / 2 / kTileSide * 6];
  ATTNSCOPE_TILES& tiles_;
  const float* q_ = nullptr;
  const float* k_ = nullptr;
};

/// CpuKernels::Products::raw.
void multiply_block(const ProductBlock& block) {
  ATTNSCOPE_TILES tiles;
  StepProduct product(block, tiles);
  for (int64_t panel = 0; panel < kBlockPanels; ++panel) {
    if ((block.panels >> panel & 1u) == 0) continue;
    const float* k = block.k + panel * block.steps * kPanelKeys;
    for (int64_t row = 0; row < block.rows; row += kTileUnitRows) {
      product.begin(block.q + row * block.steps, k);
      for (int64_t turn = 0; turn < product.turns(); ++turn) product.multiply(turn);
      float* const out = block.out + row * block.out_stride + panel * kPanelKeys;
      for (int quarter = 0; quarter < 4; ++quarter) product.store(quarter, out, block.out_stride);
    }
  }
}

/// What softmax_block makes of a step's sums.
template <bool kMoments>
struct EntryRows {
  ExpTable table;
  const ProductBlock& block;
  const float* offsets;  ///< see ExpTable::power, one a row
  LaneTotals<kMaxGroupRows>& totals;
  LaneTotals<kMaxGroupRows>& moments;

  /// Row `row` of the group with the keys of `panel`; its sums are kPanelKeys floats.
  HWY_INLINE void take(int64_t row, int64_t panel, const float* sums) const {
    const FloatTag d;
    const FloatVec offset = hn::Set(d, offsets[row]);
    float* const out =
        block.out == nullptr ? nullptr : block.out + row * block.out_stride + panel * kPanelKeys;
    HWY_UNROLL(2)
    for (int64_t lane = 0; lane < kSumLanes; lane += kLanes) {
      FloatVec total = hn::Load(d, totals.lanes[row] + lane);
      FloatVec moment = hn::Zero(d);
      if constexpr (kMoments) moment = hn::Load(d, moments.lanes[row] + lane);
      HWY_UNROLL(2)
      for (int64_t key = lane; key < kPanelKeys; key += kSumLanes) {
        FloatVec exponent;
        const FloatVec entry = table.power(hn::Load(d, sums + key), offset, exponent);
        total = hn::Add(total, entry);
        if constexpr (kMoments) moment = hn::MulAdd(entry, exponent, moment);
        if (out != nullptr) hn::Store(entry, d, out + key);
      }
      hn::Store(total, d, totals.lanes[row] + lane);
      if constexpr (kMoments) hn::Store(moment, d, moments.lanes[row] + lane);
    }
  }
};

/// All steps of a block: a panel meets all rows, which stay in the nearest cache, before the next.
template <bool kMoments>
HWY_INLINE void softmax_entries(const ProductBlock& block, SplitFactor factor,
                                RowReferences& rows) {
  // Pairs of rows that a step's entries are taken in; the tile unit multiplies during the first
  // ones and its sums are stored during the last.
  constexpr int64_t kPieces = kTileUnitRows / 2;
  constexpr int64_t kStores = 4;
  LaneTotals<kMaxGroupRows> totals, moments;
  totals.clear(block.rows);
  if constexpr (kMoments) moments.clear(block.rows);
  alignas(64) float offsets[kMaxGroupRows];
  for (int64_t row = 0; row < block.rows; ++row) {
    offsets[row] = ExpTable::row_offset(rows.references[row]);
  }
  const EntryRows<kMoments> entries{ExpTable(factor), block, offsets, totals, moments};
  alignas(64) float sums[2][kTileUnitRows * kPanelKeys];

  ATTNSCOPE_TILES tiles;
  StepProduct product(block, tiles);
  // Turns that are done by the end of a piece: the first at once, so that sums are ready early.
  int64_t until[kPieces];
  for (int64_t piece = 0; piece < kPieces; ++piece) {
    constexpr int64_t kTurnPieces = kPieces - kStores;
    const int64_t due = piece * product.turns() / kTurnPieces + 1;
    until[piece] = piece + 1 < kTurnPieces ? HWY_MIN(product.turns(), due) : product.turns();
  }
  const int64_t groups = block.rows / kTileUnitRows;
  const int64_t steps = groups * kBlockPanels;
  const auto begin = [&](int64_t step) {
    product.begin(block.q + step % groups * kTileUnitRows * block.steps,
                  block.k + step / groups * block.steps * kPanelKeys);
  };
  begin(0);
  for (int64_t turn = 0; turn < product.turns(); ++turn) product.multiply(turn);
  for (int quarter = 0; quarter < 4; ++quarter) product.store(quarter, sums[0], kPanelKeys);
  for (int64_t step = 0; step < steps; ++step) {
    // A copy whose constants stay in registers whatever the tile instructions store.
    const EntryRows<kMoments> local = entries;
    const float* const taken = sums[step % 2];
    float* const next = sums[(step + 1) % 2];
    const int64_t row = step % groups * kTileUnitRows;
    const bool more = step + 1 < steps;
    if (more) begin(step + 1);
    int64_t turn = 0;
    for (int64_t piece = 0; piece < kPieces; ++piece) {
      if (more) {
        while (turn < until[piece]) product.multiply(turn++);
        if (piece >= kPieces - kStores) {
          product.store(static_cast<int>(piece - (kPieces - kStores)), next, kPanelKeys);
        }
      }
      local.take(row + 2 * piece, step / groups, taken + 2 * piece * kPanelKeys);
      local.take(row + 2 * piece + 1, step / groups, taken + (2 * piece + 1) * kPanelKeys);
    }
  }
  totals.finish(rows.sums, block.rows);
  if constexpr (kMoments) moments.finish(rows.moments, block.rows);
}

/// CpuKernels::Products::softmax.
void softmax_block(const ProductBlock& block, SplitFactor factor, RowReferences& rows) {
  rows.with_moments ? softmax_entries<true>(block, factor, rows)
                    : softmax_entries<false>(block, factor, rows);
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
