#pragma once

#include <bit>
#include <cstdint>

namespace attnscope::cuda::emulation {

/// Four elements at a time, which every processor's registers hold.
using Bits4 = std::uint16_t __attribute__((vector_size(8)));
using Int4 = std::int32_t __attribute__((vector_size(16)));
using Float4 = float __attribute__((vector_size(16)));

/// The formats of 16 bits. Conversions to float are exact, and meet no subnormal operands, which a
/// thread may be set to flush.
struct Half {
  static void to_float(const Bits4& bits, Float4& values) {
    const Int4 half = __builtin_convertvector(bits, Int4);
    const Int4 magnitude = half & 0x7fff;
    // From the bias of 15 to that of 127; infinity and NaN keep the highest exponent.
    const Int4 is_special = magnitude >= 0x7c00;
    const Int4 normal = (magnitude << 13) + (112 << 23) + (is_special & (112 << 23));
    const Int4 subnormal =
        reinterpret_cast<Int4>(__builtin_convertvector(magnitude, Float4) * 0x1p-24f);
    const Int4 is_subnormal = magnitude < 0x400;
    values = reinterpret_cast<Float4>((subnormal & is_subnormal) | (normal & ~is_subnormal) |
                                      (half & 0x8000) << 16);
  }
};

struct Bfloat {
  static void to_float(const Bits4& bits, Float4& values) {
    values = reinterpret_cast<Float4>(__builtin_convertvector(bits, Int4) << 16);
  }
};

template <class Format>
inline float to_float(std::uint16_t bits) {
  Float4 values;
  Format::to_float(Bits4{bits}, values);
  return values[0];
}

/// To the nearest, ties to even; NaN becomes 0x7fff, as cvt.rn.f16.f32 makes it.
std::uint16_t float_to_half(float value);

}  // namespace attnscope::cuda::emulation
