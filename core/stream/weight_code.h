#pragma once

#include <cstdint>
#include <string_view>

#include "core/base/dtype.h"

namespace attnscope {

/// How a tile's entries are stored.
///   f32         the value
///   f16         logits: the value, rounded to nearest even; finite ones beyond ±65 504 become that
///   f16_scaled  weights × 2¹⁴: the mean weight 1/S of a long sequence is below binary16's normal
///               range; 2¹⁴ keeps the largest weight, 1, representable (16 384 ≤ 65 504)
///   u8_log2     weights: 0 below 2⁻²⁴, else max(1, round(255 + log₂(w)·254/24))
enum class Encoding : uint8_t { f32, f16, f16_scaled, u8_log2 };

/// The largest finite float16.
constexpr float kF16Max = 65504.0f;

constexpr int64_t encoding_bytes(Encoding e) {
  return e == Encoding::f32 ? 4 : e == Encoding::u8_log2 ? 1 : 2;
}
constexpr float kF16Scale = 0x1p14f;
constexpr double kCodeOctaves = 24.0;
constexpr int kCodeMax = 255;
constexpr std::string_view kCodeFormula =
    "code 0: weight < 2^-24; else weight = 2^((code - 255) * 24 / 254)";

/// The u8 code of a weight in 0…1, in double: the definition that backends are tested against.
uint8_t encode_u8_log2(double weight);
/// The weight that a code stands for.
double decode_u8_log2(uint8_t code);

}  // namespace attnscope
