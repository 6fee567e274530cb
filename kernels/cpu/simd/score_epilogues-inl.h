// Epilogues over raw products in memory: blocks with a mask, a bias or a ragged edge, and the score
// functions other than softmax. Compiled once for each instruction set.
#if defined(ATTNSCOPE_KERNELS_BLOCK_PASSES_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTNSCOPE_KERNELS_BLOCK_PASSES_INL_H
#undef ATTNSCOPE_KERNELS_BLOCK_PASSES_INL_H
#else
#define ATTNSCOPE_KERNELS_BLOCK_PASSES_INL_H
#endif

#include <limits>

#include "core/mask/masked_bias.h"
#include "kernels/cpu/simd/exp2-inl.h"
#include "kernels/cpu/simd/lane_totals-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attnscope::HWY_NAMESPACE {

/// Replaces every entry of a row by op.entry(row, key, product, bias); keys of panels that were not
/// computed become op.kExcluded.
template <class Op>
HWY_INLINE void for_each_key(const ProductBlock& block, const BlockBias& bias, int64_t row,
                             Op& op) {
  const FloatTag d;
  float* out = block.out + row * block.out_stride;
  const float* row_bias = bias.data + row * bias.row_stride;
  for (int64_t key = 0; key < kBlockKeys; key += kLanes) {
    if ((block.panels >> (key / kPanelKeys) & 1u) == 0) {
      hn::Store(hn::Set(d, Op::kExcluded), d, out + key);
      continue;
    }
    hn::Store(op.entry(row, key, hn::Load(d, out + key), hn::Load(d, row_bias + key)), d,
              out + key);
  }
}

/// for_each_key for all rows of a block.
template <class Op>
HWY_INLINE void for_each_entry(const ProductBlock& block, const BlockBias& bias, Op& op) {
  for (int64_t row = 0; row < block.rows; ++row) for_each_key(block, bias, row, op);
}

/// True in the lanes whose bias lets its entry count.
HWY_INLINE hn::Mask<FloatTag> is_allowed(FloatVec bias) {
  return hn::Ge(bias, hn::Set(FloatTag(), -FLT_MAX));
}

/// The bias as exponents take it: finite, also of an entry that does not count.
HWY_INLINE FloatVec bounded_bias(FloatVec bias) {
  return hn::Max(bias, hn::Set(FloatTag(), kMaskedBias));
}

using GroupTotals = LaneTotals<kMaxGroupRows>;

/// kTable: powers of products without bias come from the table.
template <bool kMoments, bool kFar, bool kTable>
struct SoftmaxEntry {
  static constexpr float kExcluded = 0;
  FloatVec high, low;
  const ExpTable& table;
  const RowReferences& rows;
  GroupTotals& totals;
  GroupTotals& moments;

  HWY_INLINE FloatVec entry(int64_t row, int64_t key, FloatVec product, FloatVec bias) {
    const FloatTag d;
    const auto allowed = is_allowed(bias);
    const FloatVec reference = hn::Set(d, rows.references[row]);
    FloatVec exponent;
    PowerFactors power{hn::Zero(d), hn::Set(d, 1.0f)};
    if constexpr (kTable) {
      const FloatVec row_constant = hn::Set(d, ExpTable::row_constant(rows.references[row]));
      power = table.power(product, row_constant, exponent);
      exponent = hn::Mul(exponent, hn::Set(d, ExpTable::kStep));
      const auto biased = hn::And(allowed, hn::Ne(bias, hn::Zero(d)));
      if (!hn::AllFalse(d, biased)) {
        FloatVec biased_exponent;
        const FloatVec entry = biased_power(product, bias, reference, biased_exponent);
        power.step = hn::IfThenElse(biased, entry, power.step);
        power.rest = hn::IfThenElse(biased, hn::Set(d, 1.0f), power.rest);
        exponent = hn::IfThenElse(biased, biased_exponent, exponent);
      }
    } else {
      power.step = biased_power(product, bias, reference, exponent);
    }
    // Whatever product stands for a key that does not count.
    power.step = hn::IfThenElseZero(allowed, power.step);
    power.rest = hn::IfThenElseZero(allowed, power.rest);
    // As the fused kernels add them: one by one, or of the table both factors at once.
    const FloatVec entry = kTable ? power.value() : power.step;
    if constexpr (kTable) {
      totals.add_product(row, key, power.step, power.rest);
    } else {
      totals.add(row, key, entry);
    }
    if constexpr (kMoments) {
      moments.add_product(row, key, entry, hn::IfThenElseZero(allowed, exponent));
    }
    return entry;
  }

 private:
  HWY_INLINE FloatVec biased_power(FloatVec product, FloatVec bias, FloatVec reference,
                                   FloatVec& exponent) {
    const FloatTag d;
    const FloatVec bounded = bounded_bias(bias);
    if constexpr (!kFar) return biased_exp2(d, product, high, low, bounded, reference, exponent);
    const FloatVec entry = far_biased_exp2(d, product, high, low, bounded, reference, exponent);
    exponent = hn::IfThenElseZero(hn::Gt(entry, hn::Zero(d)), exponent);
    return entry;
  }
};

struct MaximaEntry {
  static constexpr float kExcluded = 0;
  FloatVec high;
  alignas(64) float lanes[kMaxGroupRows][kSumLanes];

  HWY_INLINE FloatVec entry(int64_t row, int64_t key, FloatVec product, FloatVec bias) {
    const FloatTag d;
    const auto allowed = is_allowed(bias);
    const FloatVec bias_high = hn::Mul(bounded_bias(bias), hn::Set(d, kLog2eHigh));
    const FloatVec whole = hn::Round(hn::MulAdd(product, high, bias_high));
    float* at = lanes[row] + key % kSumLanes;
    const FloatVec counted = hn::IfThenElse(allowed, whole, hn::Set(d, -FLT_MAX));
    hn::Store(hn::Max(hn::Load(d, at), counted), d, at);
    return product;
  }
};

struct LinearEntry {
  static constexpr float kExcluded = 0;
  GroupTotals& totals;

  HWY_INLINE FloatVec entry(int64_t row, int64_t key, FloatVec product, FloatVec bias) {
    const FloatVec entry = hn::IfThenElseZero(is_allowed(bias), product);
    totals.add(row, key, entry);
    return entry;
  }
};

struct SigmoidEntry {
  static constexpr float kExcluded = 0;
  FloatVec high, low;

  HWY_INLINE FloatVec entry(int64_t, int64_t, FloatVec product, FloatVec bias) {
    const FloatTag d;
    const auto allowed = is_allowed(bias);
    const FloatVec one = hn::Set(d, 1.0f);
    const FloatVec bounded = hn::Min(bounded_bias(bias), hn::Set(d, kHighestBias));
    FloatVec whole;
    const FloatVec fraction =
        biased_fraction(d, hn::Neg(product), high, low, hn::Neg(bounded), whole);
    // The fraction of a number beyond 2²² may be meaningless and must not become infinite.
    const FloatVec power = scale_by_power(
        d, exp2_fraction(d, hn::Clamp(fraction, hn::Neg(one), one)), whole, hn::Zero(d));
    return hn::IfThenElseZero(allowed, hn::Div(one, hn::Add(one, power)));
  }
};

struct LogitEntry {
  static constexpr float kExcluded = -std::numeric_limits<float>::infinity();
  FloatVec high, low;

  HWY_INLINE FloatVec entry(int64_t, int64_t, FloatVec product, FloatVec bias) {
    return hn::MulAdd(product, high, hn::MulAdd(product, low, bias));
  }
};

template <bool kMoments, bool kFar>
HWY_INLINE void softmax_entries(const ProductBlock& block, SplitFactor factor,
                                const BlockBias& bias, RowReferences& rows) {
  const FloatTag d;
  const FloatVec high = hn::Set(d, factor.high);
  const FloatVec low = hn::Set(d, factor.low);
  const ExpTable table(factor);
  GroupTotals totals, moments;
  totals.clear(block.rows);
  if constexpr (kMoments) moments.clear(block.rows);
  SoftmaxEntry<kMoments, kFar, false> by_polynomial{high, low, table, rows, totals, moments};
  SoftmaxEntry<kMoments, kFar, true> by_table{high, low, table, rows, totals, moments};
  for (int64_t row = 0; row < block.rows; ++row) {
    if (rows.by_table != nullptr && rows.by_table[row]) {
      for_each_key(block, bias, row, by_table);
    } else {
      for_each_key(block, bias, row, by_polynomial);
    }
  }
  totals.finish(rows.sums, block.rows);
  if constexpr (kMoments) moments.finish(rows.moments, block.rows);
}

/// tanh(x), at most 2 ulp off for finite x; NaN for NaN.
HWY_INLINE FloatVec hyperbolic_tangent(FloatVec x) {
  const FloatTag d;
  // From there on exp(2|x|) is far above the last bit of 1, and the result is 1.
  constexpr float kMostOctaves = 60;
  constexpr float kSmall = 0.625f;
  const FloatVec size = hn::Abs(x);
  // x + x³·P(x²), minimax for the relative error up to kSmall: 9e-9, plus rounding.
  const FloatVec square = hn::Mul(x, x);
  FloatVec p = hn::Set(d, -0x1.75e1cap-8f);
  p = hn::MulAdd(p, square, hn::Set(d, 0x1.52269ap-6f));
  p = hn::MulAdd(p, square, hn::Set(d, -0x1.b83c5ap-5f));
  p = hn::MulAdd(p, square, hn::Set(d, 0x1.110726p-3f));
  p = hn::MulAdd(p, square, hn::Set(d, -0x1.555532p-2f));
  const FloatVec small = hn::MulAdd(hn::Mul(x, square), p, x);
  const auto is_small = hn::Lt(size, hn::Set(d, kSmall));
  // Most logits of models lie far below their cap.
  if (hn::AllTrue(d, is_small)) return small;
  // 1 − 2/(exp(2|x|) + 1), where no digit is lost to the difference.
  const FloatVec octaves =
      hn::Min(hn::Mul(size, hn::Set(d, 2 * kLog2eHigh)), hn::Set(d, kMostOctaves));
  const FloatVec whole = hn::Round(octaves);
  const FloatVec power =
      scale_by_power(d, exp2_fraction(d, hn::Sub(octaves, whole)), whole, hn::Zero(d));
  const FloatVec one = hn::Set(d, 1.0f);
  const FloatVec large = hn::Sub(one, hn::Div(hn::Set(d, 2.0f), hn::Add(power, one)));
  return hn::IfThenElse(is_small, small, hn::CopySign(large, x));
}

void cap_pass(const ProductBlock& block, const CapFactors& factors) {
  const FloatTag d;
  const FloatVec into_high = hn::Set(d, factors.into.high);
  const FloatVec into_low = hn::Set(d, factors.into.low);
  const FloatVec back_high = hn::Set(d, factors.back.high);
  const FloatVec back_low = hn::Set(d, factors.back.low);
  for (int64_t row = 0; row < block.rows; ++row) {
    float* const out = block.out + row * block.out_stride;
    for (int64_t key = 0; key < kBlockKeys; key += kLanes) {
      if ((block.panels >> (key / kPanelKeys) & 1u) == 0) continue;
      const FloatVec product = hn::Load(d, out + key);
      const FloatVec ratio = hn::MulAdd(product, into_high, hn::Mul(product, into_low));
      const FloatVec tangent = hyperbolic_tangent(ratio);
      FloatVec capped = hn::MulAdd(tangent, back_high, hn::Mul(tangent, back_low));
      // An infinite product has overflowed on its way: nothing is known of the sum it stands for.
      capped = hn::MulAdd(product, hn::Zero(d), capped);
      hn::Store(capped, d, out + key);
    }
  }
}

void softmax_pass(const ProductBlock& block, SplitFactor factor, const BlockBias& bias,
                  RowReferences& rows) {
  rows.with_moments ? softmax_entries<true, false>(block, factor, bias, rows)
                    : softmax_entries<false, false>(block, factor, bias, rows);
}

void far_softmax_pass(const ProductBlock& block, SplitFactor factor, const BlockBias& bias,
                      RowReferences& rows) {
  rows.with_moments ? softmax_entries<true, true>(block, factor, bias, rows)
                    : softmax_entries<false, true>(block, factor, bias, rows);
}

void exponent_maxima(const ProductBlock& block, SplitFactor factor, const BlockBias& bias,
                     float (&maxima)[kMaxGroupRows]) {
  MaximaEntry op;
  op.high = hn::Set(FloatTag(), factor.high);
  for (int64_t row = 0; row < block.rows; ++row) {
    for (float& lane : op.lanes[row]) lane = -FLT_MAX;
  }
  for_each_entry(block, bias, op);
  for (int64_t row = 0; row < block.rows; ++row) {
    maxima[row] = -FLT_MAX;
    for (float lane : op.lanes[row]) maxima[row] = HWY_MAX(maxima[row], lane);
  }
}

void linear_pass(const ProductBlock& block, const BlockBias& bias, RowReferences& rows) {
  GroupTotals totals;
  totals.clear(block.rows);
  LinearEntry op{totals};
  for_each_entry(block, bias, op);
  totals.finish(rows.sums, block.rows);
}

void sigmoid_pass(const ProductBlock& block, SplitFactor factor, const BlockBias& bias) {
  const FloatTag d;
  SigmoidEntry op{hn::Set(d, factor.high), hn::Set(d, factor.low)};
  for_each_entry(block, bias, op);
}

void logit_pass(const ProductBlock& block, SplitFactor scale, const BlockBias& bias) {
  const FloatTag d;
  LogitEntry op{hn::Set(d, scale.high), hn::Set(d, scale.low)};
  for_each_entry(block, bias, op);
}

}  // namespace attnscope::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
