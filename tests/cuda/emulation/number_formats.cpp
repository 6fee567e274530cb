#include "tests/cuda/emulation/number_formats.h"

namespace attnscope::cuda::emulation {
namespace {

std::uint32_t shift_to_nearest_even(std::uint32_t value, std::uint32_t shift) {
  const std::uint32_t half = 1u << (shift - 1);
  const std::uint32_t rest = value & ((1u << shift) - 1);
  const std::uint32_t down = value >> shift;
  return down + (rest > half || (rest == half && (down & 1) != 0) ? 1 : 0);
}

}  // namespace

float rounded_to_tf32(float value) {
  constexpr std::uint32_t kDropped = 23 - 10;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7f800000) == 0x7f800000) {
    return value;
  }
  const std::uint32_t half = 1u << (kDropped - 1);
  return std::bit_cast<float>((bits + half) & ~((1u << kDropped) - 1));
}

std::uint16_t float_to_half(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000);
  const std::uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) {
    return 0x7fff;
  }
  if (magnitude >= 0x47800000) {  // 2^16
    return sign | 0x7c00;
  }
  if (magnitude < 0x33000000) {  // less than half of the smallest subnormal, 2^-24
    return sign;
  }
  if (magnitude < 0x38800000) {  // 2^-14: in units of 2^-24
    const std::uint32_t mantissa = (magnitude & 0x7fffff) | 0x800000;
    return static_cast<std::uint16_t>(sign |
                                      shift_to_nearest_even(mantissa, 126 - (magnitude >> 23)));
  }
  return static_cast<std::uint16_t>(sign | shift_to_nearest_even(magnitude - (112u << 23), 13));
}

}  // namespace attnscope::cuda::emulation
