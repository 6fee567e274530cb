#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace attnscope {

/// Element types that tensor files hold. Q, K and V are f32, f16 or bf16 once they are opened:
/// whoever opens them rounds f64 to f32, and multiplies codes of one byte by their scales
/// (core/tensor/scaled_tensor.h). The others occur in masks and indices. e4m3 is what others call
/// float8_e4m3fn.
enum class DType : uint8_t {
  f64,
  f32,
  f16,
  bf16,
  e4m3,
  e5m2,
  e4m3fnuz,
  e5m2fnuz,
  i64,
  i32,
  i16,
  i8,
  u64,
  u32,
  u16,
  u8,
  boolean
};

/// Bytes of one element.
int64_t dtype_bytes(DType dtype);
/// "f32", "bf16", "e4m3", "bool" …
std::string_view dtype_name(DType dtype);
/// The inverse of dtype_name.
std::optional<DType> parse_dtype(std::string_view name);
constexpr bool is_floating(DType t) { return t <= DType::e5m2fnuz; }
constexpr bool is_float8(DType t) { return t >= DType::e4m3 && t <= DType::e5m2fnuz; }

/// IEEE 754 binary16, storage only.
struct f16 {
  uint16_t bits = 0;
  friend constexpr bool operator==(f16, f16) = default;
};

/// The upper half of an IEEE 754 binary32, storage only.
struct bf16 {
  uint16_t bits = 0;
  friend constexpr bool operator==(bf16, bf16) = default;
};

/// Exact.
constexpr float to_float(bf16 value) {
  return std::bit_cast<float>(static_cast<uint32_t>(value.bits) << 16);
}

/// Exact, subnormals, infinities and NaN included.
constexpr float to_float(f16 value) {
  const uint32_t sign = static_cast<uint32_t>(value.bits & 0x8000u) << 16;
  const uint32_t exponent = (value.bits >> 10) & 0x1fu;
  const uint32_t mantissa = value.bits & 0x3ffu;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent != 0)
    return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
  // Subnormal: mantissa · 2⁻²⁴, which is a normal binary32.
  const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
  return sign != 0 ? -magnitude : magnitude;
}

/// The value of a code of an is_float8() type: exact, subnormals, infinities and NaN included. The
/// encodings are those of the OCP 8-bit floating point specification, and of ROCm for fnuz.
float float8_value(DType dtype, uint8_t code);

/// Rounded to nearest even; NaN stays NaN.
bf16 to_bf16(float value);
/// Rounded to nearest even; overflow gives infinity, NaN stays NaN.
f16 to_f16(float value);

/// Converts `count` packed elements of a floating dtype to float (f64 rounded to nearest even).
/// `source` needs no alignment.
void to_floats(DType dtype, const std::byte* source, int64_t count, float* destination);

}  // namespace attnscope
