#include "core/base/dtype.h"

#include <array>
#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>

namespace attnscope {
namespace {

struct DTypeInfo {
  DType dtype;
  std::string_view name;
  int64_t bytes;
};

constexpr std::array<DTypeInfo, 17> kDTypes{{{DType::f64, "f64", 8},
                                             {DType::f32, "f32", 4},
                                             {DType::f16, "f16", 2},
                                             {DType::bf16, "bf16", 2},
                                             {DType::e4m3, "e4m3", 1},
                                             {DType::e5m2, "e5m2", 1},
                                             {DType::e4m3fnuz, "e4m3fnuz", 1},
                                             {DType::e5m2fnuz, "e5m2fnuz", 1},
                                             {DType::i64, "i64", 8},
                                             {DType::i32, "i32", 4},
                                             {DType::i16, "i16", 2},
                                             {DType::i8, "i8", 1},
                                             {DType::u64, "u64", 8},
                                             {DType::u32, "u32", 4},
                                             {DType::u16, "u16", 2},
                                             {DType::u8, "u8", 1},
                                             {DType::boolean, "bool", 1}}};

template <typename Stored, typename Convert>
void convert_all(const std::byte* source, int64_t count, float* destination, Convert convert) {
  for (int64_t i = 0; i < count; ++i) {
    Stored value;
    std::memcpy(&value, source + i * static_cast<int64_t>(sizeof(Stored)), sizeof(Stored));
    destination[i] = convert(value);
  }
}

}  // namespace

float float8_value(DType dtype, uint8_t code) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const bool fnuz = dtype == DType::e4m3fnuz || dtype == DType::e5m2fnuz;
  const int bits = dtype == DType::e4m3 || dtype == DType::e4m3fnuz ? 3 : 2;  // of the mantissa
  // 2^(6 - bits) - 1, which fnuz has one more of.
  const int bias = (1 << (6 - bits)) - 1 + (fnuz ? 1 : 0);
  const int mantissa = code & ((1 << bits) - 1), exponent = (code & 0x7f) >> bits;
  if (fnuz && code == 0x80) return kNan;
  if (dtype == DType::e4m3 && (code & 0x7f) == 0x7f) return kNan;
  if (dtype == DType::e5m2 && exponent == 0x1f && mantissa != 0) return kNan;
  float value = std::ldexp(static_cast<float>(mantissa), 1 - bias - bits);
  if (dtype == DType::e5m2 && exponent == 0x1f) {
    value = std::numeric_limits<float>::infinity();
  } else if (exponent != 0) {
    value = std::ldexp(static_cast<float>(mantissa + (1 << bits)), exponent - bias - bits);
  }
  return (code & 0x80) != 0 ? -value : value;
}

int64_t dtype_bytes(DType dtype) { return kDTypes[static_cast<size_t>(dtype)].bytes; }

std::string_view dtype_name(DType dtype) { return kDTypes[static_cast<size_t>(dtype)].name; }

std::optional<DType> parse_dtype(std::string_view name) {
  for (const DTypeInfo& info : kDTypes) {
    if (info.name == name) return info.dtype;
  }
  return std::nullopt;
}

bf16 to_bf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return {static_cast<uint16_t>((bits >> 16) | 0x40u)};
  return {static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16)};
}

f16 to_f16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint16_t sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return {static_cast<uint16_t>(sign | 0x7e00u)};
  // 65520 is the first value that rounds to infinity.
  if (magnitude >= 0x477ff000u) return {static_cast<uint16_t>(sign | 0x7c00u)};
  if (magnitude < 0x38800000u) {
    // Below 2⁻¹⁴ the unit is 2⁻²⁴: adding 0.5 (unit 2⁻²⁴ in binary32) rounds to nearest even.
    const float rounded = std::bit_cast<float>(magnitude) + 0.5f;
    return {static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(rounded) - 0x3f000000u))};
  }
  const uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u) - (112u << 23);
  return {static_cast<uint16_t>(sign | (rounded >> 13))};
}

void to_floats(DType dtype, const std::byte* source, int64_t count, float* destination) {
  switch (dtype) {
    case DType::f32:
      std::memcpy(destination, source, static_cast<size_t>(count) * sizeof(float));
      return;
    case DType::f64:
      return convert_all<double>(source, count, destination,
                                 [](double v) { return static_cast<float>(v); });
    case DType::f16:
      return convert_all<f16>(source, count, destination, [](f16 v) { return to_float(v); });
    case DType::bf16:
      return convert_all<bf16>(source, count, destination, [](bf16 v) { return to_float(v); });
    case DType::e4m3:
    case DType::e5m2:
    case DType::e4m3fnuz:
    case DType::e5m2fnuz:
      return convert_all<uint8_t>(source, count, destination,
                                  [dtype](uint8_t code) { return float8_value(dtype, code); });
    default:
      assert(false && "to_floats needs a floating dtype");
  }
}

}  // namespace attnscope
