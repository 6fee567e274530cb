// Prepares keys for key_products-inl.h: finds the largest number, splits numbers into bf16 parts.
// Compiled once for each instruction set.
#if defined(ATTNSCOPE_KERNELS_KEY_ROWS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTNSCOPE_KERNELS_KEY_ROWS_INL_H
#undef ATTNSCOPE_KERNELS_KEY_ROWS_INL_H
#else
#define ATTNSCOPE_KERNELS_KEY_ROWS_INL_H
#endif

#include <cstring>
#include <limits>
#include <type_traits>

#include "kernels/cpu/simd/key_rows.h"
#include "kernels/cpu/simd/lane_totals-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attnscope::HWY_NAMESPACE {

/// The largest of `count` numbers' bits without their signs; `data` needs no alignment.
template <class Bits>
HWY_INLINE uint32_t largest_of(const std::byte* data, int64_t count) {
  using Signed = std::make_signed_t<Bits>;
  // Without its sign bit a number's bits are the same as a signed integer's.
  const hn::ScalableTag<Signed> d;
  constexpr auto kMagnitude = static_cast<Signed>(std::numeric_limits<Signed>::max());
  const auto magnitude = hn::Set(d, kMagnitude);
  constexpr auto kStep = static_cast<int64_t>(HWY_LANES(Signed));
  const auto* const numbers = reinterpret_cast<const Signed*>(data);
  const auto take = [&](auto largest, const Signed* at)
                        HWY_ATTR { return hn::Max(largest, hn::And(hn::LoadU(d, at), magnitude)); };
  auto a = hn::Zero(d);
  auto b = hn::Zero(d);
  int64_t i = 0;
  for (; i + 2 * kStep <= count; i += 2 * kStep) {
    a = take(a, numbers + i);
    b = take(b, numbers + i + kStep);
  }
  for (; i + kStep <= count; i += kStep) a = take(a, numbers + i);
  alignas(64) Signed lanes[kStep];
  hn::Store(hn::Max(a, b), d, lanes);
  Signed largest = 0;
  for (const Signed lane : lanes) largest = HWY_MAX(largest, lane);
  for (; i < count; ++i) {
    Signed number;
    std::memcpy(&number, data + i * static_cast<int64_t>(sizeof(number)), sizeof(number));
    number = static_cast<Signed>(number & kMagnitude);
    largest = HWY_MAX(largest, number);
  }
  return static_cast<uint32_t>(largest);
}

uint32_t largest_bits(DType dtype, const std::byte* data, int64_t count) {
  return dtype == DType::f32 ? largest_of<uint32_t>(data, count)
                             : largest_of<uint16_t>(data, count);
}

/// The bits of the bf16 numbers nearest to x, in the upper halves; where that is infinite, of the
/// one below. x must be finite.
template <class DU, class V = hn::Vec<DU>>
HWY_INLINE V nearest_finite_bf16(DU du, V bits) {
  const V upper = hn::Set(du, 0xffff0000u);
  const V exponent = hn::Set(du, 0x7f800000u);
  const V odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1));
  const V nearest = hn::And(hn::Add(bits, hn::Add(hn::Set(du, 0x7fff), odd)), upper);
  const auto infinite = hn::Eq(hn::And(nearest, exponent), exponent);
  return hn::IfThenElse(infinite, hn::And(bits, upper), nearest);
}

/// kLanes numbers as their parts: part p to out[p · stride].
HWY_INLINE void store_parts(FloatVec numbers, int64_t parts, int64_t stride, uint16_t* out) {
  const FloatTag d;
  const hn::RebindToUnsigned<FloatTag> du;
  for (int64_t part = 0; part < parts; ++part) {
    const auto nearest = nearest_finite_bf16(du, hn::BitCast(du, numbers));
    numbers = hn::Sub(numbers, hn::BitCast(d, nearest));
    const hn::Rebind<uint16_t, FloatTag> half;
    hn::StoreU(hn::TruncateTo(half, hn::ShiftRight<16>(nearest)), half, out + part * stride);
  }
}

/// kLanes f16 or f32 numbers at any address.
HWY_INLINE FloatVec load_numbers(DType dtype, const std::byte* source) {
  const FloatTag d;
#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
  if (dtype == DType::f16) {
    const hn::Rebind<hwy::float16_t, FloatTag> half;
    return hn::PromoteTo(d, hn::LoadU(half, reinterpret_cast<const hwy::float16_t*>(source)));
  }
#endif
  alignas(64) float numbers[kSumLanes];
  to_floats(dtype, source, kLanes, numbers);
  return hn::Load(d, numbers);
}

void split_rows(const SplitRows& rows) {
  const FloatTag d;
  const int64_t element = dtype_bytes(rows.dtype);
  const int64_t row_bytes = rows.head_dim * element;
  const int64_t stride = 2 * rows.pairs;
  for (int64_t row = 0; row < rows.count; ++row) {
    const std::byte* const source = rows.source + row * row_bytes;
    auto* const out = reinterpret_cast<uint16_t*>(rows.out) + row * rows.parts * stride;
    std::memset(out, 0, static_cast<size_t>(rows.parts * stride) * sizeof(uint16_t));
    if (rows.parts == 1) {
      std::memcpy(out, source, static_cast<size_t>(row_bytes));
      continue;
    }
    int64_t i = 0;
    for (; i + kLanes <= rows.head_dim; i += kLanes) {
      const FloatVec numbers = rows.dtype == DType::f32
                                   ? hn::LoadU(d, reinterpret_cast<const float*>(source) + i)
                                   : load_numbers(rows.dtype, source + i * element);
      store_parts(numbers, rows.parts, stride, out + i);
    }
    if (i == rows.head_dim) continue;
    // The pairs of a part fill whole vectors: what lies beyond the channels is 0.
    alignas(64) float numbers[kSumLanes] = {};
    to_floats(rows.dtype, source + i * element, rows.head_dim - i, numbers);
    store_parts(hn::Load(d, numbers), rows.parts, stride, out + i);
  }
}

}  // namespace attnscope::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
