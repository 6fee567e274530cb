// The product of a block of weights with V, compiled once for each instruction set.
#if defined(ATTNSCOPE_KERNELS_VALUE_PRODUCT_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTNSCOPE_KERNELS_VALUE_PRODUCT_INL_H
#undef ATTNSCOPE_KERNELS_VALUE_PRODUCT_INL_H
#else
#define ATTNSCOPE_KERNELS_VALUE_PRODUCT_INL_H
#endif

#include <hwy/highway.h>

#include "kernels/cpu/simd/cpu_kernels.h"
#include "kernels/cpu/simd/lane_totals-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attnscope::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// totals[0 … kLanes) += sums, in double.
HWY_INLINE void add_to_doubles(FloatVec sums, double* HWY_RESTRICT totals) {
  const FloatTag d;
  alignas(64) float lanes[kSumLanes];
  hn::Store(sums, d, lanes);
#if HWY_TARGET == HWY_WASM
  // Highway has no vectors of doubles there.
  for (int64_t lane = 0; lane < kLanes; ++lane) totals[lane] += static_cast<double>(lanes[lane]);
#else
  const hn::CappedTag<double, 8> wide;
  const hn::Rebind<float, decltype(wide)> narrow;
  for (int64_t lane = 0; lane < kLanes; lane += static_cast<int64_t>(hn::Lanes(wide))) {
    const auto more = hn::PromoteTo(wide, hn::Load(narrow, lanes + lane));
    hn::Store(hn::Add(hn::Load(wide, totals + lane), more), wide, totals + lane);
  }
#endif
}

/// CpuKernels::multiply_values. Every lane is one channel and adds its products in the order of the
/// keys, whatever the instruction set.
void multiply_values(const ValueProduct& product) {
  static_assert(kValueChannels == kPanelKeys);
  const FloatTag d;
  for (int64_t panel = 0; panel < product.panels; ++panel) {
    const float* values = product.values + panel * product.panel_stride;
    double* totals = product.totals + panel * product.total_rows * kValueChannels;
    for (int64_t col = 0; col < kValueChannels; col += kTileKeys) {
      for (int64_t row = 0; row < product.rows; row += kTileRows) {
        const float* HWY_RESTRICT v = values + col;
        const float* HWY_RESTRICT w = product.weights + row * kBlockKeys;
        FloatVec sums[kTileRows][kTileVectors];
        HWY_UNROLL(12)
        for (int r = 0; r < kTileRows; ++r) {
          HWY_UNROLL(4)
          for (int i = 0; i < kTileVectors; ++i) sums[r][i] = hn::Zero(d);
        }
        for (int64_t key = 0; key < product.keys; ++key) {
          FloatVec channels[kTileVectors];
          HWY_UNROLL(4)
          for (int i = 0; i < kTileVectors; ++i) channels[i] = hn::Load(d, v + i * kLanes);
          HWY_UNROLL(12)
          for (int r = 0; r < kTileRows; ++r) {
            const FloatVec weight = hn::Set(d, w[r * kBlockKeys + key]);
            HWY_UNROLL(4)
            for (int i = 0; i < kTileVectors; ++i) {
              sums[r][i] = hn::MulAdd(weight, channels[i], sums[r][i]);
            }
          }
          v += kValueChannels;
        }
        HWY_UNROLL(12)
        for (int r = 0; r < kTileRows; ++r) {
          HWY_UNROLL(4)
          for (int i = 0; i < kTileVectors; ++i) {
            add_to_doubles(sums[r][i], totals + (row + r) * kValueChannels + col + i * kLanes);
          }
        }
      }
    }
  }
}

}  // namespace attnscope::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
