// Vector types of an instruction set, and the row sums that are the same on all of them.
#if defined(ATTNSCOPE_KERNELS_LANE_TOTALS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTNSCOPE_KERNELS_LANE_TOTALS_INL_H
#undef ATTNSCOPE_KERNELS_LANE_TOTALS_INL_H
#else
#define ATTNSCOPE_KERNELS_LANE_TOTALS_INL_H
#endif

#include <hwy/highway.h>

#include <cfloat>

#include "kernels/cpu/cpu_kernels.h"

HWY_BEFORE_NAMESPACE();
namespace attnscope::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Vectors of at most 16 lanes: wider ones would need other panels.
using FloatTag = hn::CappedTag<float, kSumLanes>;
using FloatVec = hn::Vec<FloatTag>;
inline constexpr int64_t kLanes = static_cast<int64_t>(HWY_MIN(HWY_LANES(float), 16));

// Registers of the micro-kernel's tile: 24 sums of 32 registers with AVX-512 and NEON, 12 of 16
// with AVX2.
#if HWY_CAP_GE512
inline constexpr int kTileRows = 12;
inline constexpr int kTileVectors = 2;
#elif HWY_CAP_GE256
inline constexpr int kTileRows = 6;
inline constexpr int kTileVectors = 2;
#elif HWY_TARGET == HWY_SCALAR
inline constexpr int kTileRows = 2;
inline constexpr int kTileVectors = 4;
#else
inline constexpr int kTileRows = 6;
inline constexpr int kTileVectors = 4;
#endif
inline constexpr int64_t kTileKeys = kTileVectors * kLanes;
static_assert(kRegisterRows % kTileRows == 0 && kPanelKeys % kTileKeys == 0);

/// Sums of a row group over a block, in kSumLanes lanes a row: lane l adds the entries whose key
/// index is l mod 16, in ascending order; then the lanes are added in a fixed tree.
template <int64_t kRows>
struct LaneTotals {
  alignas(64) float lanes[kRows][kSumLanes];

  HWY_INLINE void clear(int64_t rows) {
    const FloatTag d;
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t lane = 0; lane < kSumLanes; lane += kLanes) {
        hn::Store(hn::Zero(d), d, lanes[row] + lane);
      }
    }
  }

  HWY_INLINE void add(int64_t row, int64_t key, FloatVec entry) {
    const FloatTag d;
    float* at = lanes[row] + key % kSumLanes;
    hn::Store(hn::Add(hn::Load(d, at), entry), d, at);
  }

  HWY_INLINE void add_product(int64_t row, int64_t key, FloatVec a, FloatVec b) {
    const FloatTag d;
    float* at = lanes[row] + key % kSumLanes;
    hn::Store(hn::MulAdd(a, b, hn::Load(d, at)), d, at);
  }

  HWY_INLINE void finish(float* sums, int64_t rows) {
    for (int64_t row = 0; row < rows; ++row) {
      fold<8>(lanes[row]);
      fold<4>(lanes[row]);
      fold<2>(lanes[row]);
      sums[row] = lanes[row][0] + lanes[row][1];
    }
  }

 private:
  /// The count is a constant so that the compiler makes one vector addition of it.
  template <int kHalf>
  static HWY_INLINE void fold(float* HWY_RESTRICT values) {
    for (int lane = 0; lane < kHalf; ++lane) values[lane] += values[lane + kHalf];
  }
};

}  // namespace attnscope::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
