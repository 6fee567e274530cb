#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "core/base/dtype.h"
#include "tests/support/catch.h"

using namespace attnscope;

namespace {

/// The value of a binary format with 1 sign bit, from its definition.
double decode(uint32_t bits, int exponent_bits, int mantissa_bits) {
  const uint32_t mantissa = bits & ((1u << mantissa_bits) - 1);
  const uint32_t exponent = bits >> mantissa_bits & ((1u << exponent_bits) - 1);
  const double sign = (bits >> (mantissa_bits + exponent_bits)) != 0 ? -1.0 : 1.0;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  if (exponent == (1u << exponent_bits) - 1) {
    return mantissa != 0 ? std::numeric_limits<double>::quiet_NaN()
                         : sign * std::numeric_limits<double>::infinity();
  }
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign * std::ldexp((1u << mantissa_bits) + mantissa,
                           static_cast<int>(exponent) - bias - mantissa_bits);
}

/// The number of patterns for which `good` does not hold, so that 65 536 checks are one assertion.
template <typename Good>
int count_bad(Good good) {
  int bad = 0;
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) bad += good(static_cast<uint16_t>(bits)) ? 0 : 1;
  return bad;
}

/// Same value, the sign of zero included; NaN equals NaN.
bool same(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

/// Between each two neighbouring finite values: below the middle rounds down, above it rounds up,
/// the middle goes to the even pattern.
template <typename Half, typename Round>
int count_bad_roundings(Round round, uint16_t infinity) {
  int bad = 0;
  for (uint16_t low = 0; low < infinity; ++low) {
    const auto high = static_cast<uint16_t>(low + 1);
    // Beyond the largest finite value infinity stands where the next value would.
    const double below = to_float(Half{low});
    const double step = low == 0 ? to_float(Half{1}) : below - to_float(Half{uint16_t(low - 1)});
    const double above = high == infinity ? below + step : to_float(Half{high});
    const auto middle = static_cast<float>((below + above) / 2);
    const uint16_t even = (low & 1u) == 0 ? low : high;
    for (const uint16_t sign : {0x0000, 0x8000}) {
      const auto check = [&](float value, uint16_t expected) {
        bad += round(sign != 0 ? -value : value).bits == (expected | sign) ? 0 : 1;
      };
      check(middle, even);
      check(std::nextafter(middle, 0.0f), low);
      check(std::nextafter(middle, std::numeric_limits<float>::infinity()), high);
    }
  }
  return bad;
}

}  // namespace

TEST_CASE("all 65 536 binary16 patterns convert to float exactly") {
  CHECK(count_bad([](uint16_t bits) { return same(to_float(f16{bits}), decode(bits, 5, 10)); }) ==
        0);
}

TEST_CASE("all 65 536 bfloat16 patterns convert to float exactly") {
  CHECK(count_bad([](uint16_t bits) { return same(to_float(bf16{bits}), decode(bits, 8, 7)); }) ==
        0);
}

TEST_CASE("values that fit round to themselves, NaN stays NaN") {
  CHECK(count_bad([](uint16_t bits) {
          const float value = to_float(f16{bits});
          const f16 back = to_f16(value);
          return std::isnan(value) ? std::isnan(to_float(back)) : back.bits == bits;
        }) == 0);
  CHECK(count_bad([](uint16_t bits) {
          const float value = to_float(bf16{bits});
          const bf16 back = to_bf16(value);
          return std::isnan(value) ? std::isnan(to_float(back)) : back.bits == bits;
        }) == 0);
  // A NaN whose payload lies in the bits that are cut off must not become infinity.
  CHECK(std::isnan(to_float(to_bf16(std::bit_cast<float>(0x7f800001u)))));
  CHECK(std::isnan(to_float(to_f16(std::bit_cast<float>(0xff800001u)))));
}

TEST_CASE("rounding is to nearest even at every middle, subnormals and overflow included") {
  CHECK(count_bad_roundings<f16>([](float v) { return to_f16(v); }, 0x7c00) == 0);
  CHECK(count_bad_roundings<bf16>([](float v) { return to_bf16(v); }, 0x7f80) == 0);
  CHECK(to_f16(65519.99f).bits == 0x7bff);
  CHECK(to_f16(65520.0f).bits == 0x7c00);
  CHECK(to_f16(-1e30f).bits == 0xfc00);
  CHECK(to_f16(std::numeric_limits<float>::denorm_min()).bits == 0);
  CHECK(to_f16(-0.0f).bits == 0x8000);
  CHECK(to_bf16(std::numeric_limits<float>::max()).bits == 0x7f80);
  CHECK(to_bf16(-std::numeric_limits<float>::infinity()).bits == 0xff80);
}

TEST_CASE("to_floats converts every floating dtype from unaligned bytes") {
  const auto check = [](DType dtype, const auto& stored, const std::vector<float>& expected) {
    const size_t bytes = stored.size() * sizeof(stored[0]);
    std::vector<std::byte> source(bytes + 1);
    std::memcpy(source.data() + 1, stored.data(), bytes);
    std::vector<float> out(stored.size() + 1, -77.0f);
    to_floats(dtype, source.data() + 1, static_cast<int64_t>(stored.size()), out.data());
    INFO(dtype_name(dtype));
    CHECK(out.back() == -77.0f);
    out.pop_back();
    CHECK(out == expected);
  };
  const std::vector<float> values{0.0f, 1.5f, -2.0f, 65504.0f};
  std::vector<f16> halves;
  for (float v : values) halves.push_back(to_f16(v));
  check(DType::f16, halves, values);
  check(DType::f32, values, values);
  check(DType::bf16, std::vector<bf16>{{0x3fc0}, {0xc000}}, {1.5f, -2.0f});
  // 1 + 2⁻²⁴ lies in the middle of two floats.
  check(DType::f64, std::vector<double>{1.0 + 0x1p-24, 1.0 + 0x1.8p-23, 0.1},
        {1.0f, 1.0f + 0x1p-22f, 0.1f});
}

TEST_CASE("dtype names and sizes go both ways") {
  int64_t bytes = 0;
  for (int i = 0; i < 17; ++i) {
    const auto dtype = static_cast<DType>(i);
    INFO(dtype_name(dtype));
    CHECK(parse_dtype(dtype_name(dtype)) == dtype);
    bytes += dtype_bytes(dtype);
  }
  CHECK(bytes == 8 + 4 + 2 + 2 + 4 * 1 + 2 * (8 + 4 + 2 + 1) + 1);
  CHECK(dtype_bytes(DType::bf16) == 2);
  CHECK(dtype_name(DType::boolean) == "bool");
  CHECK_FALSE(parse_dtype("f8").has_value());
  CHECK_FALSE(parse_dtype("").has_value());
}

TEST_CASE("codes of one byte have the values of their specifications") {
  struct Known {
    DType dtype;
    uint8_t one, largest,
        smallest;  ///< codes of 1, of the largest and of the smallest number above 0
    float top, least;
  };
  // OCP 8-bit floating point specification (OFP8) and, for fnuz, the FP8 formats of Noune et al.
  for (const Known& known : {Known{DType::e4m3, 0x38, 0x7e, 0x01, 448, 0x1p-9f},
                             Known{DType::e5m2, 0x3c, 0x7b, 0x01, 57344, 0x1p-16f},
                             Known{DType::e4m3fnuz, 0x40, 0x7f, 0x01, 240, 0x1p-10f},
                             Known{DType::e5m2fnuz, 0x40, 0x7f, 0x01, 57344, 0x1p-17f}}) {
    INFO(dtype_name(known.dtype));
    CHECK(float8_value(known.dtype, known.one) == 1);
    CHECK(float8_value(known.dtype, known.largest) == known.top);
    CHECK(float8_value(known.dtype, known.smallest) == known.least);
    CHECK(float8_value(known.dtype, 0) == 0);
    for (uint8_t code = 1; code <= known.largest; ++code) {
      CHECK(float8_value(known.dtype, code) >
            float8_value(known.dtype, static_cast<uint8_t>(code - 1)));
      CHECK(float8_value(known.dtype, static_cast<uint8_t>(code | 0x80)) ==
            -float8_value(known.dtype, code));
    }
    // Between two powers of two numbers stand evenly.
    const int steps = known.dtype == DType::e4m3 || known.dtype == DType::e4m3fnuz ? 8 : 4;
    for (int i = 0; i <= steps; ++i) {
      CHECK(float8_value(known.dtype, static_cast<uint8_t>(known.one + i)) ==
            1 + static_cast<float>(i) / static_cast<float>(steps));
    }
  }
  for (const int code : {0x7f, 0xff})
    CHECK(std::isnan(float8_value(DType::e4m3, static_cast<uint8_t>(code))));
  for (const int code : {0x7d, 0x7e, 0x7f, 0xfd, 0xfe, 0xff}) {
    CHECK(std::isnan(float8_value(DType::e5m2, static_cast<uint8_t>(code))));
  }
  CHECK(float8_value(DType::e5m2, 0x7c) == std::numeric_limits<float>::infinity());
  CHECK(float8_value(DType::e5m2, 0xfc) == -std::numeric_limits<float>::infinity());
  CHECK(std::isnan(float8_value(DType::e4m3fnuz, 0x80)));
  CHECK(std::isnan(float8_value(DType::e5m2fnuz, 0x80)));
}
