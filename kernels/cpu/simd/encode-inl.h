// Entries to their stored form, compiled once for each instruction set.
#if defined(ATTNSCOPE_KERNELS_ENCODE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTNSCOPE_KERNELS_ENCODE_INL_H
#undef ATTNSCOPE_KERNELS_ENCODE_INL_H
#else
#define ATTNSCOPE_KERNELS_ENCODE_INL_H
#endif

#include <cstring>
#include <limits>

#include "core/base/dtype.h"
#include "kernels/cpu/simd/lane_totals-inl.h"
#include "kernels/cpu/simd/stored_forms-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attnscope::HWY_NAMESPACE {

/// log₂ of normal positive numbers, to 4e-7 absolutely: the exponent so chosen that the significand
/// m lies in [√½, √2), and (m − 1) times a polynomial of degree 6 (least squares, reweighted
/// towards the smallest maximum error of log₂ m).
HWY_INLINE FloatVec log2_normal(FloatVec x) {
  const FloatTag d;
  const hn::RebindToSigned<FloatTag> di;
  const auto bits = hn::BitCast(di, x);
  const auto exponent = hn::ShiftRight<23>(hn::Sub(bits, hn::Set(di, 0x3f3504f3)));
  const FloatVec significand = hn::BitCast(d, hn::Sub(bits, hn::ShiftLeft<23>(exponent)));
  const FloatVec z = hn::Sub(significand, hn::Set(d, 1.0f));
  FloatVec p = hn::Set(d, 0.170660213f);
  p = hn::MulAdd(p, z, hn::Set(d, -0.272728741f));
  p = hn::MulAdd(p, z, hn::Set(d, 0.297263771f));
  p = hn::MulAdd(p, z, hn::Set(d, -0.358957261f));
  p = hn::MulAdd(p, z, hn::Set(d, 0.480464756f));
  p = hn::MulAdd(p, z, hn::Set(d, -0.721376061f));
  p = hn::MulAdd(p, z, hn::Set(d, 1.44269967f));
  return hn::MulAdd(p, z, hn::ConvertTo(d, exponent));
}

/// The value as it is, logits included.
struct StoreF32Plain {
  using Stored = float;
  HWY_INLINE void operator()(FloatVec value, float* out) const {
    hn::StoreU(value, FloatTag(), out);
  }
};

/// Logits: finite ones stay finite, since −inf says masked.
struct StoreF16Logits {
  using Stored = f16;
  HWY_INLINE void operator()(FloatVec value, f16* out) const {
    const FloatTag d;
    const FloatVec most = hn::Set(d, kF16Max);
    const auto masked = hn::Lt(value, hn::Set(d, -std::numeric_limits<float>::max()));
    StoreF16()(hn::IfThenElse(masked, value, hn::Clamp(value, hn::Neg(most), most)), out);
  }
};

struct StoreU8Log2 {
  using Stored = uint8_t;
  HWY_INLINE void operator()(FloatVec weight, uint8_t* out) const {
    const FloatTag d;
    const hn::RebindToSigned<FloatTag> di;
    const FloatVec smallest = hn::Set(d, 0x1p-24f);
    constexpr float kPerOctave = static_cast<float>((kCodeMax - 1) / kCodeOctaves);
    const FloatVec code = hn::MulAdd(log2_normal(hn::Max(weight, smallest)), hn::Set(d, kPerOctave),
                                     hn::Set(d, static_cast<float>(kCodeMax)));
    const auto rounded =
        hn::NearestInt(hn::Clamp(code, hn::Set(d, 1.0f), hn::Set(d, static_cast<float>(kCodeMax))));
    const auto visible = hn::RebindMask(di, hn::Ge(weight, smallest));
    const hn::Rebind<uint8_t, FloatTag> du8;
    hn::StoreU(hn::DemoteTo(du8, hn::IfThenElseZero(visible, rounded)), du8, out);
  }
};

template <class Store>
HWY_INLINE void store_row(const float* source, int64_t count, float factor, Store store,
                          std::byte* destination) {
  using Stored = typename Store::Stored;
  const FloatTag d;
  const FloatVec factors = hn::Set(d, factor);
  // Bytes of the caller: they may be unaligned, which StoreU allows.
  Stored* out = reinterpret_cast<Stored*>(destination);
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    store(hn::Mul(hn::LoadU(d, source + i), factors), out + i);
  }
  if (i >= count) return;
  alignas(64) float rest[kSumLanes] = {};
  alignas(64) Stored stored[kSumLanes];
  std::memcpy(rest, source + i, static_cast<size_t>(count - i) * sizeof(float));
  store(hn::Mul(hn::Load(d, rest), factors), stored);
  std::memcpy(destination + i * static_cast<int64_t>(sizeof(Stored)), stored,
              static_cast<size_t>(count - i) * sizeof(Stored));
}

template <class Store>
HWY_INLINE void store_rows(const EncodeRows& rows, Store store, float common_factor) {
  for (int64_t row = 0; row < rows.rows; ++row) {
    const float factor =
        rows.factors == nullptr ? common_factor : rows.factors[row] * common_factor;
    store_row(rows.source + row * rows.source_stride, rows.count, factor, store,
              rows.destination + row * rows.destination_stride *
                                     static_cast<int64_t>(sizeof(typename Store::Stored)));
  }
}

void encode_weights(const EncodeRows& rows, Encoding encoding) {
  switch (encoding) {
    case Encoding::f32:
      return store_rows(rows, StoreF32(), 1);
    case Encoding::f16:
      return store_rows(rows, StoreF16Weights(), 1);
    case Encoding::f16_scaled:
      // A power of two: the product is rounded once.
      return store_rows(rows, StoreF16Weights(), kF16Scale);
    case Encoding::u8_log2:
      return store_rows(rows, StoreU8Log2(), 1);
  }
}

void encode_logits(const EncodeRows& rows, Encoding encoding) {
  if (encoding == Encoding::f16) {
    store_rows(rows, StoreF16Logits(), 1);
  } else {
    store_rows(rows, StoreF32Plain(), 1);
  }
}

}  // namespace attnscope::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
