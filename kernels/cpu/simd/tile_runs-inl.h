// Turns a tile unit's products into sums of exponentials, entries, and weights as they are stored.
// Included after tile_product-inl.h and key_row_product-inl.h, between the same definitions.
//
// While one step's sums become entries, the tile unit multiplies the next step: pieces of tile
// instructions stand among the vector ones, and the sums of two steps lie in two buffers of 4 KiB.
// A panel of keys meets all rows of the group, which stay in the nearest cache, before the next.

namespace attnscope::HWY_NAMESPACE::ATTNSCOPE_DOT_NAMESPACE {

/// True where tile instructions stand among vector ones. Not under sanitizers, which make so much
/// of that much code that a compiler is at it for half an hour.
#if defined(ATTNSCOPE_FEW_INSTANCES)
inline constexpr bool kStrewn = false;
#else
inline constexpr bool kStrewn = ATTNSCOPE_TILES::kNative;
#endif

using NarrowTable = NarrowExpTable<ATTNSCOPE_TILES::Shift>;

/// The vector work on one step, piece by piece, among the tile instructions of the next one. `take`
/// is a consumer: between take.begin(first row, key) and take.end(), take.row(sums, row) has the
/// step's rows one after the other, with the panel that begins at key `key` of the run.
template <bool kMultiply, class Step, class Consumer, int kPiece = 0>
HWY_INLINE void take_step(Step& product, float* next, Consumer& take, const float* sums,
                          int64_t row) {
  if constexpr (!kStrewn || !kMultiply) {
    // Nothing works at the same time: less code will do.
    if constexpr (kMultiply) product.finish(next, kPanelKeys);
    for (int64_t r = 0; r < kTileUnitRows; ++r) take.row(sums + r * kPanelKeys, row + r);
  } else if constexpr (Step::kIsLoop && kPiece == 0) {
    constexpr int kPieces = kStepPieces - kStoringPieces;
    for (int piece = 0; piece < kPieces; ++piece) {
      product.multiply_until(piece);
      take.row(sums + 2 * piece * kPanelKeys, row + 2 * piece);
      take.row(sums + (2 * piece + 1) * kPanelKeys, row + 2 * piece + 1);
    }
    take_step<kMultiply, Step, Consumer, kPieces>(product, next, take, sums, row);
  } else if constexpr (kPiece < kStepPieces) {
    if constexpr (kMultiply) product.template piece<kPiece>(next, kPanelKeys);
    take.row(sums + 2 * kPiece * kPanelKeys, row + 2 * kPiece);
    take.row(sums + (2 * kPiece + 1) * kPanelKeys, row + 2 * kPiece + 1);
    take_step<kMultiply, Step, Consumer, kPiece + 1>(product, next, take, sums, row);
  }
}

/// All steps of a run, block after block; `end_block(block)` ends the run where it is false.
/// Returns how many blocks ended well.
template <class Step, class Consumer, class EndBlock>
HWY_INLINE int64_t take_run(const BlockRun& run, const Consumer& consumer, EndBlock end_block) {
  alignas(64) float buffers[2][kTileUnitRows * kPanelKeys];
  float* taken = buffers[0];
  float* next = buffers[1];
  ATTNSCOPE_TILES tiles;
  Step product(run.steps, run.parts, tiles);
  product.begin(run.q, run.k);
  product.finish(taken, kPanelKeys);
  const int64_t panels = run.blocks * kBlockPanels;
  for (int64_t panel = 0; panel < panels; ++panel) {
    const float* const k = run.k + panel * run.steps * kPanelKeys;
    for (int64_t row = 0; row < run.rows; row += kTileUnitRows) {
      const bool wraps = row + kTileUnitRows == run.rows;
      // A copy whose constants stay in registers whatever the tile instructions store.
      Consumer local = consumer;
      local.begin(row, panel * kPanelKeys);
      if (wraps && panel + 1 == panels) {
        take_step<false>(product, next, local, taken, row);
        local.end();
        break;
      }
      product.begin(wraps ? run.q : run.q + (row + kTileUnitRows) * run.steps,
                    wraps ? k + run.steps * kPanelKeys : k);
      take_step<true>(product, next, local, taken, row);
      local.end();
      float* const free = taken;
      taken = next;
      next = free;
    }
    if ((panel + 1) % kBlockPanels == 0 && !end_block(panel / kBlockPanels)) {
      return panel / kBlockPanels;
    }
  }
  return run.blocks;
}

/// take_run, by the FixedStepProduct of the run's number of turns where there is one.
template <class Consumer, class EndBlock>
HWY_INLINE int64_t take_blocks(const BlockRun& run, const Consumer& consumer, EndBlock end_block) {
  if constexpr (kStrewn) {
    using Two = FixedStepProduct<2>;
    using Four = FixedStepProduct<4>;
    if (Two::serves(run.steps, run.parts)) return take_run<Two>(run, consumer, end_block);
    if (Four::serves(run.steps, run.parts)) return take_run<Four>(run, consumer, end_block);
  }
  return take_run<StepProduct>(run, consumer, end_block);
}

/// Constants of a group's rows as a table takes them.
template <class Table>
struct RowConstants {
  alignas(64) float rows[kMaxGroupRows];

  RowConstants(const float* references, int64_t count) {
    for (int64_t row = 0; row < count; ++row) rows[row] = Table::row_constant(references[row]);
  }
};

/// Sums of a group's rows over a block.
template <bool kMoments>
struct GroupLanes {
  LaneTotals<kMaxGroupRows> totals;
  LaneTotals<kMoments ? kMaxGroupRows : 1> moments;

  HWY_INLINE void clear(int64_t rows) {
    totals.clear(rows);
    if constexpr (kMoments) moments.clear(rows);
  }
  /// Moments with exponents in octaves.
  HWY_INLINE void finish_moments(float* sums, int64_t rows) {
    moments.finish(sums, rows);
    for (int64_t row = 0; row < rows; ++row) sums[row] *= ExpTable::kStep;
  }
};

/// Adds up entries, and keeps them where it is asked to.
template <class Table, bool kMoments, bool kKeep>
struct SumEntries {
  Table table;
  const float* constants;
  GroupLanes<kMoments>* lanes;
  float* out;
  int64_t out_stride;

  HWY_INLINE void begin(int64_t row, int64_t key) {
    if constexpr (kKeep) out += row * out_stride + key;
  }
  HWY_INLINE void end() {}

  HWY_INLINE void row(const float* sums, int64_t row) {
    const FloatTag d;
    const FloatVec constant = hn::Set(d, constants[row]);
    HWY_UNROLL(2)
    for (int64_t lane = 0; lane < kSumLanes; lane += kLanes) {
      float* const total_at = lanes->totals.lanes[row] + lane;
      FloatVec total = hn::Load(d, total_at);
      FloatVec moment = hn::Zero(d);
      if constexpr (kMoments) moment = hn::Load(d, lanes->moments.lanes[row] + lane);
      HWY_UNROLL(2)
      for (int64_t at = lane; at < kPanelKeys; at += kSumLanes) {
        const FloatVec product = hn::Load(d, sums + at);
        FloatVec steps;
        const PowerFactors power = table.power(product, constant, steps);
        total = hn::MulAdd(power.step, power.rest, total);
        if constexpr (kMoments) moment = hn::MulAdd(power.value(), steps, moment);
        if constexpr (kKeep) hn::Store(power.value(), d, out + at);
      }
      hn::Store(total, d, total_at);
      if constexpr (kMoments) hn::Store(moment, d, lanes->moments.lanes[row] + lane);
    }
    if constexpr (kKeep) out += out_stride;
  }
};

/// True where every block sum is sound and no less than its row's `least`.
HWY_INLINE bool are_sound(const float* sums, const float* least, int64_t rows) {
  const FloatTag d;
  auto sound = hn::Eq(hn::Zero(d), hn::Zero(d));
  for (int64_t row = 0; row < rows; row += kLanes) {
    const FloatVec sum = hn::Load(d, sums + row);
    sound = hn::And(sound, hn::Ge(sum, hn::Load(d, least + row)));
    sound = hn::And(sound, hn::Le(sum, hn::Set(d, kLargestSum)));
  }
  return hn::AllTrue(d, sound);
}

HWY_INLINE void add_to_doubles(const float* values, int64_t count, double* totals) {
  const hn::CappedTag<double, 8> dd;
  const hn::Rebind<float, decltype(dd)> df;
  for (int64_t i = 0; i < count; i += static_cast<int64_t>(hn::Lanes(dd))) {
    const auto value = hn::PromoteTo(dd, hn::Load(df, values + i));
    hn::Store(hn::Add(hn::Load(dd, totals + i), value), dd, totals + i);
  }
}

template <class Table, bool kMoments>
HWY_INLINE int64_t sum_blocks(const BlockRun& run, SplitFactor factor, RunSums& rows) {
  GroupLanes<kMoments> lanes;
  lanes.clear(run.rows);
  const RowConstants<Table> constants(rows.references, run.rows);
  const SumEntries<Table, kMoments, false> consumer{Table(factor), constants.rows, &lanes, nullptr,
                                                    0};
  return take_blocks(run, consumer, [&](int64_t) {
    alignas(64) float sums[kMaxGroupRows];
    lanes.totals.finish(sums, run.rows);
    if (!are_sound(sums, rows.least, run.rows)) return false;
    add_to_doubles(sums, run.rows, rows.totals);
    if constexpr (kMoments) {
      lanes.finish_moments(sums, run.rows);
      add_to_doubles(sums, run.rows, rows.moments);
    }
    lanes.clear(run.rows);
    for (int64_t row = 0; row < run.rows; ++row) rows.least[row] = 0;
    return true;
  });
}

/// CpuKernels::Products::sum_run.
int64_t sum_run(const BlockRun& run, SplitFactor factor, RunSums& rows) {
  if (rows.with_moments) {
    return run.narrow ? sum_blocks<NarrowTable, true>(run, factor, rows)
                      : sum_blocks<ExpTable, true>(run, factor, rows);
  }
  return run.narrow ? sum_blocks<NarrowTable, false>(run, factor, rows)
                    : sum_blocks<ExpTable, false>(run, factor, rows);
}

template <bool kMoments>
HWY_INLINE void keep_block(const BlockRun& run, const ProductBlock& block, SplitFactor factor,
                           RowReferences& rows) {
  GroupLanes<kMoments> lanes;
  lanes.clear(run.rows);
  const RowConstants<ExpTable> constants(rows.references, run.rows);
  const SumEntries<ExpTable, kMoments, true> consumer{ExpTable(factor), constants.rows, &lanes,
                                                      block.out, block.out_stride};
  take_blocks(run, consumer, [](int64_t) { return true; });
  lanes.totals.finish(rows.sums, run.rows);
  if constexpr (kMoments) lanes.finish_moments(rows.moments, run.rows);
}

/// CpuKernels::Products::softmax.
void softmax_block(const ProductBlock& block, SplitFactor factor, RowReferences& rows) {
  const BlockRun run{.q = block.q,
                     .k = block.k,
                     .steps = block.steps,
                     .parts = block.parts,
                     .rows = block.rows,
                     .blocks = 1};
  rows.with_moments ? keep_block<true>(run, block, factor, rows)
                    : keep_block<false>(run, block, factor, rows);
}

/// Entries alone.
template <class Table>
struct KeepEntries {
  Table table;
  const float* constants;
  float* out;
  int64_t out_stride;

  HWY_INLINE void begin(int64_t row, int64_t key) { out += row * out_stride + key; }
  HWY_INLINE void end() {}

  HWY_INLINE void row(const float* sums, int64_t row) {
    const FloatTag d;
    const FloatVec constant = hn::Set(d, constants[row]);
    HWY_UNROLL(2)
    for (int64_t at = 0; at < kPanelKeys; at += kLanes) {
      hn::Store(table.power(hn::Load(d, sums + at), constant).value(), d, out + at);
    }
    out += out_stride;
  }
};

template <class Table>
HWY_INLINE void keep_entries(const BlockRun& run, SplitFactor factor, const float* references,
                             float* out, int64_t out_stride) {
  const RowConstants<Table> constants(references, run.rows);
  const KeepEntries<Table> consumer{Table(factor), constants.rows, out, out_stride};
  take_blocks(run, consumer, [](int64_t) { return true; });
}

/// CpuKernels::Products::entry_run.
void entry_run(const BlockRun& run, SplitFactor factor, const float* references, float* out,
               int64_t out_stride) {
  run.narrow ? keep_entries<NarrowTable>(run, factor, references, out, out_stride)
             : keep_entries<ExpTable>(run, factor, references, out, out_stride);
}

template <class Store, size_t kVectors>
HWY_INLINE void store_panel(Store store, const FloatVec (&weights)[kVectors],
                            typename Store::Stored* to) {
  HWY_UNROLL(2)
  for (size_t i = 0; i < kVectors; ++i) store(weights[i], to + i * kLanes);
}

#if HWY_TARGET == HWY_AVX3
/// A line of memory at once. Weights of the table are not −0.
HWY_INLINE void store_panel(StoreF16Weights, const FloatVec (&weights)[2], f16* to) {
  const __m256i low = _mm512_cvtps_ph(weights[0].raw, _MM_FROUND_NO_EXC);
  const __m256i high = _mm512_cvtps_ph(weights[1].raw, _MM_FROUND_NO_EXC);
  _mm512_storeu_si512(to, _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1));
}
#endif

/// Weights on their way to where they are stored, in the encodings that one vector instruction
/// makes.
template <class Table, class Store>
struct StoreWeights {
  Table table;
  const float* constants;
  const float* factors;
  int64_t rows;
  std::byte* const* out;
  int64_t out_stride;
  Store store;
  typename Store::Stored* to;

  HWY_INLINE void begin(int64_t row, int64_t key) {
    to = reinterpret_cast<typename Store::Stored*>(out[key / kPanelKeys]) + row * out_stride;
  }
  HWY_INLINE void end() {}

  HWY_INLINE void row(const float* sums, int64_t row) {
    if (row >= rows) return;
    const FloatTag d;
    const FloatVec constant = hn::Set(d, constants[row]);
    const FloatVec factor = hn::Set(d, factors[row]);
    FloatVec weights[kPanelKeys / kLanes];
    HWY_UNROLL(2)
    for (int64_t at = 0; at < kPanelKeys / kLanes; ++at) {
      const FloatVec entry = table.power(hn::Load(d, sums + at * kLanes), constant).value();
      weights[at] = hn::Mul(entry, factor);
    }
    store_panel(store, weights, to);
    to += out_stride;
  }
};

template <class Table, class Store>
HWY_INLINE void store_weights(const WeightRun& weights, SplitFactor factor, Store store) {
  const BlockRun& run = weights.run;
  const RowConstants<Table> constants(weights.references, run.rows);
  const StoreWeights<Table, Store> consumer{Table(factor), constants.rows, weights.factors,
                                            weights.rows,  weights.out,    weights.out_stride,
                                            store,         nullptr};
  take_blocks(run, consumer, [](int64_t) { return true; });
}

/// CpuKernels::Products::weight_run.
void weight_run(const WeightRun& weights, SplitFactor factor) {
  const bool narrow = weights.run.narrow;
  if (weights.encoding == Encoding::f32) {
    return narrow ? store_weights<NarrowTable>(weights, factor, StoreF32())
                  : store_weights<ExpTable>(weights, factor, StoreF32());
  }
  narrow ? store_weights<NarrowTable>(weights, factor, StoreF16Weights())
         : store_weights<ExpTable>(weights, factor, StoreF16Weights());
}

/// Weights to the columns that their rows add to, which stay in registers for as many rows as add
/// to the same.
template <class Table>
struct AddColumns {
  static constexpr int kVectors = kPanelKeys / kLanes;
  Table table;
  const float* constants;
  const ColumnRun* run;
  int64_t key = 0;
  float* to_sums = nullptr;
  float* to_maxima = nullptr;
  FloatVec sums[kVectors] = {};
  FloatVec maxima[kVectors] = {};

  AddColumns(SplitFactor factor, const float* row_constants, const ColumnRun& columns)
      : table(factor), constants(row_constants), run(&columns) {}

  HWY_INLINE void begin(int64_t row, int64_t first_key) {
    key = first_key;
    open(row);
  }
  HWY_INLINE void end() { close(); }

  HWY_INLINE void row(const float* products, int64_t row) {
    if (row >= run->rows) return;
    if (run->sums[row] + key != to_sums) {
      close();
      open(row);
    }
    const FloatTag d;
    const FloatVec constant = hn::Set(d, constants[row]);
    const FloatVec factor = hn::Set(d, run->factors[row]);
    HWY_UNROLL(2)
    for (int i = 0; i < kVectors; ++i) {
      const FloatVec product = hn::Load(d, products + i * kLanes);
      const FloatVec weight = hn::Mul(table.power(product, constant).value(), factor);
      sums[i] = hn::Add(sums[i], weight);
      maxima[i] = hn::Max(maxima[i], weight);
    }
  }

 private:
  HWY_INLINE void open(int64_t row) {
    to_sums = run->sums[row] + key;
    to_maxima = run->maxima[row] + key;
    for (int i = 0; i < kVectors; ++i) {
      sums[i] = hn::Load(FloatTag(), to_sums + i * kLanes);
      maxima[i] = hn::Load(FloatTag(), to_maxima + i * kLanes);
    }
  }
  HWY_INLINE void close() const {
    for (int i = 0; i < kVectors; ++i) {
      hn::Store(sums[i], FloatTag(), to_sums + i * kLanes);
      hn::Store(maxima[i], FloatTag(), to_maxima + i * kLanes);
    }
  }
};

template <class Table>
HWY_INLINE void add_columns(const ColumnRun& columns, SplitFactor factor) {
  const RowConstants<Table> constants(columns.references, columns.run.rows);
  const AddColumns<Table> consumer(factor, constants.rows, columns);
  take_blocks(columns.run, consumer, [](int64_t) { return true; });
}

/// CpuKernels::Products::column_run.
void column_run(const ColumnRun& columns, SplitFactor factor) {
  columns.run.narrow ? add_columns<NarrowTable>(columns, factor)
                     : add_columns<ExpTable>(columns, factor);
}

CpuKernels::Products kernels() {
  return {.raw = multiply_block,
          .softmax = softmax_block,
          .sum_run = sum_run,
          .weight_run = weight_run,
          .entry_run = entry_run,
          .column_run = column_run,
          .spin = spin_dot,
          .key_rows = multiply_key_rows};
}

}  // namespace attnscope::HWY_NAMESPACE::ATTNSCOPE_DOT_NAMESPACE
