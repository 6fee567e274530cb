// A vector of weights as f32 or f16 in memory, compiled once for each instruction set.
#if defined(ATTNSCOPE_KERNELS_STORED_FORMS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTNSCOPE_KERNELS_STORED_FORMS_INL_H
#undef ATTNSCOPE_KERNELS_STORED_FORMS_INL_H
#else
#define ATTNSCOPE_KERNELS_STORED_FORMS_INL_H
#endif

#include "core/base/dtype.h"
#include "kernels/cpu/simd/lane_totals-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attnscope::HWY_NAMESPACE {

struct StoreF32 {
  using Stored = float;
  HWY_INLINE void operator()(FloatVec weight, float* out) const {
    const auto visible = hn::Ge(weight, hn::Set(FloatTag(), 0x1p-100f));
    hn::StoreU(hn::IfThenElseZero(visible, weight), FloatTag(), out);
  }
};

struct StoreF16 {
  using Stored = f16;
  HWY_INLINE void operator()(FloatVec value, f16* out) const {
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
    // Highway's conversion in software neither rounds subnormals nor overflows as IEEE 754 does.
    float values[kLanes];
    hn::StoreU(value, FloatTag(), values);
    for (int64_t lane = 0; lane < kLanes; ++lane) out[lane] = to_f16(values[lane]);
#else
    const hn::Rebind<hwy::float16_t, FloatTag> half;
    hn::StoreU(hn::DemoteTo(half, value), half, reinterpret_cast<hwy::float16_t*>(out));
#endif
  }
};

/// Entries far below 0 may be −0 or 0, by how their block was computed.
struct StoreF16Weights {
  using Stored = f16;
  HWY_INLINE void operator()(FloatVec weight, f16* out) const { StoreF16()(hn::Abs(weight), out); }
};

}  // namespace attnscope::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
