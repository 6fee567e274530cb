// 2^x for the softmax epilogues, compiled once for each instruction set.
#if defined(ATTNSCOPE_KERNELS_EXP2_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTNSCOPE_KERNELS_EXP2_INL_H
#undef ATTNSCOPE_KERNELS_EXP2_INL_H
#else
#define ATTNSCOPE_KERNELS_EXP2_INL_H
#endif

#include <hwy/highway.h>

#include "kernels/cpu/cpu_kernels.h"

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

/// The same, and 0 however far below 0 the sum of product and bias lies; NaN for a product that is
/// infinite or NaN. `exponent` may be −∞ where the result is 0.
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

}  // namespace attnscope::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
