// The micro-kernel and its fused softmax epilogue, compiled once for each instruction set and each
// kind of dot product: whoever includes this file (again and again) defines
//   ATTNSCOPE_DOT_NAMESPACE           a namespace for this kind
//   ATTNSCOPE_DOT(sum, a, b)          sum + a·b, vectors of 32-bit lanes
//   ATTNSCOPE_DOT_PRODUCTS            how many products ATTNSCOPE_DOT adds to each lane
// between HWY_BEFORE_NAMESPACE() and HWY_AFTER_NAMESPACE().

namespace attnscope::HWY_NAMESPACE::ATTNSCOPE_DOT_NAMESPACE {

/// kTileRows × kTileVectors sums of products in registers. q is [steps, kRegisterRows] from the
/// tile's first row on, k [steps, kPanelKeys] from its first key on. Every lane is one key and adds
/// its products in the order of the head dimension, whatever the instruction set.
HWY_INLINE void multiply_tile(const float* HWY_RESTRICT q, const float* HWY_RESTRICT k,
                              int64_t steps, FloatVec (&sums)[kTileRows][kTileVectors]) {
  const FloatTag d;
  HWY_UNROLL(12)
  for (int row = 0; row < kTileRows; ++row) {
    HWY_UNROLL(4)
    for (int v = 0; v < kTileVectors; ++v) sums[row][v] = hn::Zero(d);
  }
  for (int64_t step = 0; step < steps; ++step) {
    // Panels stream from L2: the hardware's prefetcher alone leaves a tenth of the time on the
    // table.
    HWY_UNROLL(4)
    for (int v = 0; v < kTileVectors; ++v) hwy::Prefetch(k + 16 * kPanelKeys + v * kLanes);
    FloatVec keys[kTileVectors];
    HWY_UNROLL(4)
    for (int v = 0; v < kTileVectors; ++v) keys[v] = hn::Load(d, k + v * kLanes);
    HWY_UNROLL(12)
    for (int row = 0; row < kTileRows; ++row) {
      const FloatVec query = hn::Set(d, q[row]);
      HWY_UNROLL(4)
      for (int v = 0; v < kTileVectors; ++v) {
        sums[row][v] = ATTNSCOPE_DOT(sums[row][v], query, keys[v]);
      }
    }
    q += kRegisterRows;
    k += kPanelKeys;
  }
}

/// CpuKernels::Products::raw.
void multiply_block(const ProductBlock& block) {
  const FloatTag d;
  for (int64_t panel = 0; panel < kBlockPanels; ++panel) {
    if ((block.panels >> panel & 1u) == 0) continue;
    const float* k = block.k + panel * block.steps * kPanelKeys;
    for (int64_t col = 0; col < kPanelKeys; col += kTileKeys) {
      for (int64_t row = 0; row < kRegisterRows; row += kTileRows) {
        FloatVec sums[kTileRows][kTileVectors];
        multiply_tile(block.q + row, k + col, block.steps, sums);
        float* out = block.out + row * block.out_stride + panel * kPanelKeys + col;
        HWY_UNROLL(12)
        for (int r = 0; r < kTileRows; ++r) {
          HWY_UNROLL(4)
          for (int v = 0; v < kTileVectors; ++v) {
            hn::Store(sums[r][v], d, out + r * block.out_stride + v * kLanes);
          }
        }
      }
    }
  }
}

template <bool kMoments>
HWY_INLINE void softmax_entries(const ProductBlock& block, SplitFactor factor,
                                RowReferences& rows) {
  const FloatTag d;
  const FloatVec high = hn::Set(d, factor.high);
  const FloatVec low = hn::Set(d, factor.low);
  LaneTotals<kRegisterRows> totals, moments;
  totals.clear(kRegisterRows);
  if constexpr (kMoments) moments.clear(kRegisterRows);
  for (int64_t panel = 0; panel < kBlockPanels; ++panel) {
    const float* k = block.k + panel * block.steps * kPanelKeys;
    for (int64_t col = 0; col < kPanelKeys; col += kTileKeys) {
      for (int64_t row = 0; row < kRegisterRows; row += kTileRows) {
        FloatVec sums[kTileRows][kTileVectors];
        multiply_tile(block.q + row, k + col, block.steps, sums);
        float* out = block.out == nullptr
                         ? nullptr
                         : block.out + row * block.out_stride + panel * kPanelKeys + col;
        HWY_UNROLL(12)
        for (int r = 0; r < kTileRows; ++r) {
          const FloatVec reference = hn::Set(d, rows.references[row + r]);
          HWY_UNROLL(4)
          for (int v = 0; v < kTileVectors; ++v) {
            FloatVec exponent;
            const FloatVec entry = scaled_exp2(d, sums[r][v], high, low, reference, exponent);
            totals.add(row + r, col + v * kLanes, entry);
            if constexpr (kMoments) {
              moments.add_product(row + r, col + v * kLanes, entry, exponent);
            }
            if (out != nullptr) hn::Store(entry, d, out + r * block.out_stride + v * kLanes);
          }
        }
      }
    }
  }
  totals.finish(rows.sums, kRegisterRows);
  if constexpr (kMoments) moments.finish(rows.moments, kRegisterRows);
}

/// CpuKernels::Products::softmax.
void softmax_block(const ProductBlock& block, SplitFactor factor, RowReferences& rows) {
  rows.with_moments ? softmax_entries<true>(block, factor, rows)
                    : softmax_entries<false>(block, factor, rows);
}

/// CpuKernels::Products::spin: twelve independent chains hide the latency on all processors known.
double spin_dot(int64_t iterations, float* sink) {
  const FloatTag d;
  constexpr int kChains = 12;
  const FloatVec a = hn::Set(d, sink[0]);
  const FloatVec b = hn::Set(d, sink[1]);
  FloatVec sums[kChains];
  HWY_UNROLL(12)
  for (int chain = 0; chain < kChains; ++chain) sums[chain] = a;
  for (int64_t i = 0; i < iterations; ++i) {
    HWY_UNROLL(12)
    for (int chain = 0; chain < kChains; ++chain) sums[chain] = ATTNSCOPE_DOT(sums[chain], a, b);
  }
  for (int chain = 1; chain < kChains; ++chain) sums[0] = hn::Add(sums[0], sums[chain]);
  hn::StoreU(sums[0], d, sink);
  return 2.0 * ATTNSCOPE_DOT_PRODUCTS * kChains * static_cast<double>(kLanes * iterations);
}

}  // namespace attnscope::HWY_NAMESPACE::ATTNSCOPE_DOT_NAMESPACE
