#pragma once

#include <bit>
#include <cstdint>

namespace attnscope::cuda::emulation {

/// Exact. Without branches and without subnormal operands, which a thread may be set to flush.
inline float half_to_float(std::uint16_t half) {
  const std::uint32_t sign = std::uint32_t{half & 0x8000u} << 16;
  const std::uint32_t magnitude = half & 0x7fffu;
  // From the bias of 15 to that of 127; infinity and NaN keep the highest exponent.
  const std::uint32_t shift = magnitude >= 0x7c00 ? 224u << 23 : 112u << 23;
  const std::uint32_t normal = (magnitude << 13) + shift;
  const auto subnormal = std::bit_cast<std::uint32_t>(
      static_cast<float>(static_cast<std::int32_t>(magnitude)) * 0x1p-24f);
  return std::bit_cast<float>(sign | (magnitude < 0x400 ? subnormal : normal));
}

inline float bfloat_to_float(std::uint16_t bits) {
  return std::bit_cast<float>(std::uint32_t{bits} << 16);
}

/// To the nearest, ties to even; NaN becomes 0x7fff, as cvt.rn.f16.f32 makes it.
std::uint16_t float_to_half(float value);

}  // namespace attnscope::cuda::emulation
