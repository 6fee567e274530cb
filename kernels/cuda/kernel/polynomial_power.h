// Powers of two without the unit that makes them. Device code.
#pragma once

#include <device_intrinsics.h>

#include <cstdint>

namespace attnscope::cuda {

/// 2^x as fraction · whole; `x` is what it was made of.
struct Power {
  float fraction, whole, x;
};

/// 2^x for x up to 127, to a relative error of 4·10⁻⁶, by the units that multiply and add; below
/// 2^-126 that instead, of NaN NaN.
__device__ inline Power polynomial_power(float x) {
  x = larger_or_nan(x, -126.0f);
  // The nearest whole number, in the last bits of a float.
  const float shifted = x + 0x1.8p23f;
  const float f = x - (shifted - 0x1.8p23f);
  float p = __builtin_fmaf(f, 9.6663684e-3f, 5.5921976e-2f);
  p = __builtin_fmaf(f, p, 0.24022349f);
  p = __builtin_fmaf(f, p, 0.69312105f);
  p = __builtin_fmaf(f, p, 1.0f);
  const uint32_t whole = (__builtin_bit_cast(uint32_t, shifted) << 23) + 0x3f800000u;
  return {p, __builtin_bit_cast(float, whole), x};
}

}  // namespace attnscope::cuda
