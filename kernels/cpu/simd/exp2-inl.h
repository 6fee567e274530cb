// 2^x for the softmax epilogues, compiled once for each instruction set.
#if defined(ATTNSCOPE_KERNELS_EXP2_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTNSCOPE_KERNELS_EXP2_INL_H
#undef ATTNSCOPE_KERNELS_EXP2_INL_H
#else
#define ATTNSCOPE_KERNELS_EXP2_INL_H
#endif

#include <hwy/highway.h>

#include "kernels/cpu/simd/cpu_kernels.h"
#include "kernels/cpu/simd/lane_totals-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attnscope::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// log₂(e) as the sum of two floats.
inline constexpr float kLog2eHigh = 0x1.715476p+0f;
inline constexpr float kLog2eLow = 0x1.4ae0cp-26f;

/// Biases above count as this one: log₂(e) times it is still a float32.
inline constexpr float kHighestBias = 0x1.6p127f;
/// Exponents below lie so far under any reference (see kMaxExponent) that their power is 0.
inline constexpr float kLowestExponent = -0x1p24f;

/// 2^fraction for |fraction| ≤ 1/2. Minimax polynomial of degree 5 for the relative error (Remez,
/// constant rounded to 1 so that 2^0 is exact): at most 1.6e-7, plus rounding.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V exp2_fraction(D d, V fraction) {
  V p = hn::Set(d, 0.00132764725f);
  p = hn::MulAdd(p, fraction, hn::Set(d, 0.00967554096f));
  p = hn::MulAdd(p, fraction, hn::Set(d, 0.0555071309f));
  p = hn::MulAdd(p, fraction, hn::Set(d, 0.240221202f));
  p = hn::MulAdd(p, fraction, hn::Set(d, 0.693146944f));
  return hn::MulAdd(p, fraction, hn::Set(d, 1.0f));
}

/// value·2^(whole − reference) for value in [½, 2]: 0 below 2^-126, infinite from 2^129 on.
/// Denormals must be flushed (see flush_denormals.h), or instruction sets differ at the lower end.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V scale_by_power(D d, V value, V whole, V reference) {
  const V exponent = hn::Sub(whole, reference);
#if HWY_TARGET == HWY_AVX3
  (void)d;
  return V{_mm512_scalef_ps(value.raw, exponent.raw)};
#else
  // 2²³ puts the biased exponent into the low bits of the sum; all bits above them are shifted out.
  const hn::RebindToUnsigned<D> du;
  const V biased =
      hn::Clamp(hn::Add(exponent, hn::Set(d, 127.0f)), hn::Zero(d), hn::Set(d, 255.0f));
  const V power =
      hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(du, hn::Add(biased, hn::Set(d, 0x1p23f)))));
  return hn::Mul(value, power);
#endif
}

/// The next function, and product·factor − reference as `exponent`.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V scaled_exp2(D d, V product, V high, V low, V reference, V& exponent) {
  const V whole = hn::Round(hn::Mul(product, high));
  V fraction = hn::MulSub(product, high, whole);
  fraction = hn::MulAdd(product, low, fraction);
  exponent = hn::Add(hn::Sub(whole, reference), fraction);
  return scale_by_power(d, exp2_fraction(d, fraction), whole, reference);
}

/// 2^(product·factor − reference) for an integral reference. All scaling is by powers of two, so
/// the significand's bits do not depend on the reference. Where product·factor lies beyond 2²⁴ the
/// fraction is but the rounding error of `whole`; from about 2⁵⁰ on its polynomial may overflow,
/// and the result is then infinite or NaN, even where it should be 0.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V scaled_exp2(D d, V product, V high, V low, V reference) {
  V exponent;
  return scaled_exp2(d, product, high, low, reference, exponent);
}

/// product·factor + bias·log₂(e) as `whole` + the returned fraction. A bias of 0 gives the bits of
/// scaled_exp2. `bias` must not lie beyond ±kHighestBias.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V biased_fraction(D d, V product, V high, V low, V bias, V& whole) {
  const V log2e_high = hn::Set(d, kLog2eHigh);
  const V log2e_low = hn::Set(d, kLog2eLow);
  const V bias_high = hn::Mul(bias, log2e_high);
  const V bias_low = hn::MulAdd(bias, log2e_low, hn::MulSub(bias, log2e_high, bias_high));
  whole = hn::Round(hn::MulAdd(product, high, bias_high));
  const V fraction = hn::Add(hn::MulSub(product, high, whole), bias_high);
  return hn::Add(hn::MulAdd(product, low, fraction), bias_low);
}

/// 2^exponent, exponent = product·factor + bias·log₂(e) − reference; like scaled_exp2, not to be
/// trusted where product·factor + bias·log₂(e) lies beyond 2⁵⁰.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V biased_exp2(D d, V product, V high, V low, V bias, V reference, V& exponent) {
  V whole;
  const V fraction = biased_fraction(d, product, high, low, bias, whole);
  exponent = hn::Add(hn::Sub(whole, reference), fraction);
  return scale_by_power(d, exp2_fraction(d, fraction), whole, reference);
}

/// biased_exp2, and 0 however far below 0 the sum of product and bias lies; NaN for a product that
/// is infinite or NaN. `exponent` may be −∞ where the result is 0.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V far_biased_exp2(D d, V product, V high, V low, V bias, V reference, V& exponent) {
  V whole;
  V fraction = biased_fraction(d, product, high, low, bias, whole);
  fraction = hn::IfThenElseZero(hn::Ge(whole, hn::Set(d, kLowestExponent)), fraction);
  // An infinite product has overflowed on its way: nothing is known of the sum it stands for.
  fraction = hn::MulAdd(product, hn::Zero(d), fraction);
  exponent = hn::Add(hn::Sub(whole, reference), fraction);
  return scale_by_power(d, exp2_fraction(d, fraction), whole, reference);
}

/// A power as two factors: 2^whole·2^(j/32), j = 0 … 31, and 2^rest, |rest| ≤ 1/64. Sums take their
/// product unrounded.
struct PowerFactors {
  FloatVec step, rest;
  HWY_INLINE FloatVec value() const { return hn::Mul(step, rest); }
};

/// 2^(product·factor − reference) by a table of 2^(j/32) and a polynomial of degree 2 for what is
/// left, |product·factor| at most kMaxTableExponent: fewer instructions than scaled_exp2, and a
/// relative error of at most 2.3e-7 with all roundings (of it 6e-8 the polynomial's), without the
/// bias of half a ulp that the longer one has. The significand's bits do not depend on the
/// reference, nor on which of the two forms takes a power. Constants of a head, in registers.
class ExpTable {
 public:
  explicit ExpTable(SplitFactor factor)
      : high_(hn::Set(FloatTag(), factor.high * kSteps)),
        low_(hn::Set(FloatTag(), factor.low * kSteps)) {
#if HWY_CAP_GE512
    lower_ = hn::Load(FloatTag(), kPowers);
    upper_ = hn::Load(FloatTag(), kPowers + kSteps / 2);
#endif
  }

  /// The constant that power() takes for a row with this reference.
  static float row_constant(float reference) { return -(kMagic / kSteps + reference); }

  HWY_INLINE PowerFactors power(FloatVec product, FloatVec row) const {
    FloatVec unused;
    return power(product, row, unused);
  }
  /// And the exponent, product·factor − reference, in steps of 1/32, to half a ulp and what the
  /// factor lacks.
  HWY_INLINE PowerFactors power(FloatVec product, FloatVec row, FloatVec& steps) const {
    const FloatTag d;
    const FloatVec magic = hn::Set(d, kMagic);
    const FloatVec shifted = hn::MulAdd(product, high_, magic);
    const FloatVec rest = rest_of(product, hn::Sub(shifted, magic));
    // Exact wherever the power is neither 0 nor infinite: multiples of 1/32.
    const FloatVec scale = hn::MulAdd(shifted, hn::Set(d, kStep), row);
    steps = hn::MulAdd(scale, hn::Set(d, kSteps), rest);
    return {scaled(look_up(shifted), scale), fraction(rest)};
  }

  /// The length of a step: an exponent in steps times this is the exponent in base 2.
  static constexpr float kStep = 1.0f / 32;

 protected:
  static constexpr int kSteps = 32;
  static_assert(kSteps * kStep == 1);
  /// Adding it leaves the nearest integer in the low bits of the sum.
  static constexpr float kMagic = 0x1.8p23f;
  /// 2^(j/32), rounded to nearest.
  alignas(64) static constexpr float kPowers[kSteps] = {
      0x1.0p+0f,      0x1.059b0ep+0f, 0x1.0b5586p+0f, 0x1.11301ep+0f, 0x1.172b84p+0f,
      0x1.1d4874p+0f, 0x1.2387a6p+0f, 0x1.29e9ep+0f,  0x1.306fep+0f,  0x1.371a74p+0f,
      0x1.3dea64p+0f, 0x1.44e086p+0f, 0x1.4bfdaep+0f, 0x1.5342b6p+0f, 0x1.5ab07ep+0f,
      0x1.6247ecp+0f, 0x1.6a09e6p+0f, 0x1.71f75ep+0f, 0x1.7a1148p+0f, 0x1.82589ap+0f,
      0x1.8ace54p+0f, 0x1.93737cp+0f, 0x1.9c4918p+0f, 0x1.a5503cp+0f, 0x1.ae89fap+0f,
      0x1.b7f77p+0f,  0x1.c199bep+0f, 0x1.cb720ep+0f, 0x1.d5818ep+0f, 0x1.dfc974p+0f,
      0x1.ea4afap+0f, 0x1.f50766p+0f};

  /// The rest of product·factor beyond `whole`, both in steps.
  HWY_INLINE FloatVec rest_of(FloatVec product, FloatVec whole) const {
    return hn::MulAdd(product, low_, hn::MulSub(product, high_, whole));
  }

  /// 2^(rest/32) ≈ 1 + c1·rest + c2·rest², |rest| ≤ ½, least relative error.
  static HWY_INLINE FloatVec fraction(FloatVec rest) {
    const FloatTag d;
    const FloatVec p = hn::MulAdd(rest, hn::Set(d, 0x1.ebfbe4p-13f), hn::Set(d, 0x1.62e584p-6f));
    return hn::MulAdd(p, rest, hn::Set(d, 1.0f));
  }

  HWY_INLINE FloatVec look_up(FloatVec shifted) const {
    const FloatTag d;
    const hn::RebindToSigned<FloatTag> di;
    const auto bits = hn::BitCast(di, shifted);
#if HWY_TARGET == HWY_AVX3
    (void)d;
    return FloatVec{_mm512_permutex2var_ps(lower_.raw, bits.raw, upper_.raw)};
#else
    const auto index = hn::And(bits, hn::Set(di, kSteps - 1));
    return hn::GatherIndex(d, kPowers, index);
#endif
  }

  FloatVec high_, low_;
#if HWY_CAP_GE512
  FloatVec lower_, upper_;
#endif

 private:
  static HWY_INLINE FloatVec scaled(FloatVec value, FloatVec scale) {
#if HWY_TARGET == HWY_AVX3
    return FloatVec{_mm512_scalef_ps(value.raw, scale.raw)};
#else
    const FloatTag d;
    return scale_by_power(d, value, hn::Floor(scale), hn::Zero(d));
#endif
  }
};

/// ExpTable for rows whose exponents less the reference all lie within ±kMaxNarrowExponent: the
/// whole part is added to the bits of the table's power, which takes integer instructions alone.
/// Beside tile instructions those have a port of their own. Shift: `shift(bits)` is bits · 2¹⁸ plus
/// kResidue in each lane.
template <class Shift>
class NarrowExpTable : public ExpTable {
 public:
  explicit NarrowExpTable(SplitFactor factor) : ExpTable(factor) {
#if HWY_CAP_GE512
    lower_ = less_index(lower_, 0);
    upper_ = less_index(upper_, kSteps / 2);
#endif
  }

  static float row_constant(float reference) { return kMagic - kSteps * reference; }

  HWY_INLINE PowerFactors power(FloatVec product, FloatVec row) const {
    FloatVec unused;
    return power(product, row, unused);
  }
  HWY_INLINE PowerFactors power(FloatVec product, FloatVec row, FloatVec& steps) const {
    const FloatTag d;
    const hn::RebindToSigned<FloatTag> di;
    const FloatVec shifted = hn::MulAdd(product, high_, row);
    const FloatVec rest = rest_of(product, hn::Sub(shifted, row));
    steps = hn::Add(hn::Sub(shifted, hn::Set(d, kMagic)), rest);
    const auto bits = hn::BitCast(di, shifted);
#if HWY_CAP_GE512
    const FloatVec base = look_up(shifted);
#else
    const auto index = hn::And(bits, hn::Set(di, kSteps - 1));
    const FloatVec base = less_index_of(look_up(shifted), index);
#endif
    const auto step = hn::Add(hn::BitCast(di, base), shift_.shift(bits));
    return {hn::BitCast(d, step), fraction(rest)};
  }

 private:
  /// Less what the shifted index adds beside the whole part.
  template <class Index>
  static HWY_INLINE FloatVec less_index_of(FloatVec power, Index index) {
    const hn::RebindToSigned<FloatTag> di;
    const auto excess = hn::Add(hn::ShiftLeft<kIndexShift>(index), hn::Set(di, Shift::kResidue));
    return hn::BitCast(FloatTag(), hn::Sub(hn::BitCast(di, power), excess));
  }
  static HWY_INLINE FloatVec less_index(FloatVec powers, int32_t first) {
    return less_index_of(powers, hn::Iota(hn::RebindToSigned<FloatTag>(), first));
  }

  /// A step of 1/32 stands so far below a whole one, which is bit 23 of a float.
  static constexpr int kIndexShift = 18;
  Shift shift_;
};

/// The shift of NarrowExpTable by an instruction that every processor has.
struct PlainShift {
  static constexpr int32_t kResidue = 0;
  template <class V>
  HWY_INLINE V shift(V bits) const {
    return hn::ShiftLeft<18>(bits);
  }
};

}  // namespace attnscope::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
