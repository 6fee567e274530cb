#pragma once

#include <bit>
#include <cstdint>

namespace attnscope::cuda::emulation {

/// Eight elements at a time, in as many registers as the processor takes.
using Bits8 = std::uint16_t __attribute__((vector_size(16)));
using Int8 = std::int32_t __attribute__((vector_size(32)));
using Float8 = float __attribute__((vector_size(32)));

/// The formats of 16 bits. Conversions to float are exact, and meet no subnormal operands, which a
/// thread may be set to flush.
struct Half {
  [[gnu::always_inline]] static void to_float(const Bits8& bits, Float8& values) {
    const Int8 half = __builtin_convertvector(bits, Int8);
    const Int8 magnitude = half & 0x7fff;
    // All bits of an element or none: GCC 12 takes comparisons of vectors apart.
    const Int8 is_subnormal = (magnitude - 0x400) >> 31;
    const Int8 is_special = (0x7bff - magnitude) >> 31;
    // From the bias of 15 to that of 127; infinity and NaN keep the highest exponent.
    const Int8 normal = (magnitude << 13) + (112 << 23) + (is_special & (112 << 23));
    const Int8 subnormal =
        reinterpret_cast<Int8>(__builtin_convertvector(magnitude, Float8) * 0x1p-24f);
    values = reinterpret_cast<Float8>((subnormal & is_subnormal) | (normal & ~is_subnormal) |
                                      (half & 0x8000) << 16);
  }
};

struct Bfloat {
  [[gnu::always_inline]] static void to_float(const Bits8& bits, Float8& values) {
    values = reinterpret_cast<Float8>(__builtin_convertvector(bits, Int8) << 16);
  }
};

template <class Format>
inline float to_float(std::uint16_t bits) {
  Float8 values;
  Format::to_float(Bits8{bits}, values);
  return values[0];
}

/// To the nearest float with 10 bits of mantissa, ties away from 0, as cvt.rna.tf32.f32 does;
/// infinity and NaN stay what they are.
float rounded_to_tf32(float value);

/// To the nearest, ties to even; NaN becomes 0x7fff, as cvt.rn.f16.f32 makes it.
std::uint16_t float_to_half(float value);

}  // namespace attnscope::cuda::emulation
