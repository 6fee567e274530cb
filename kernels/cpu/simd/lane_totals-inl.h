// Vector types of an instruction set, and the row sums that are the same on all of them.
#if defined(ATTNSCOPE_KERNELS_LANE_TOTALS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTNSCOPE_KERNELS_LANE_TOTALS_INL_H
#undef ATTNSCOPE_KERNELS_LANE_TOTALS_INL_H
#else
#define ATTNSCOPE_KERNELS_LANE_TOTALS_INL_H
#endif

#include <hwy/highway.h>

#include <cfloat>

#include "kernels/cpu/simd/cpu_kernels.h"

HWY_BEFORE_NAMESPACE();
namespace attnscope::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Vectors of at most 16 lanes: wider ones would need other panels.
using FloatTag = hn::CappedTag<float, kSumLanes>;
using FloatVec = hn::Vec<FloatTag>;
inline constexpr int64_t kLanes = static_cast<int64_t>(HWY_MIN(HWY_LANES(float), 16));

// Registers of the micro-kernel's tile: 24 sums of 32 registers with AVX-512 and NEON, 12 of 16
// with AVX2. WebAssembly has no number of registers, but the machines that run it may have 16, of
// which products that are not fused take some more.
#if HWY_CAP_GE512
inline constexpr int kTileRows = 12;
inline constexpr int kTileVectors = 2;
#elif HWY_CAP_GE256
inline constexpr int kTileRows = 6;
inline constexpr int kTileVectors = 2;
#elif HWY_TARGET == HWY_SCALAR
inline constexpr int kTileRows = 2;
inline constexpr int kTileVectors = 4;
#elif HWY_TARGET == HWY_WASM
inline constexpr int kTileRows = 4;
inline constexpr int kTileVectors = 2;
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
    int64_t row = 0;
#if HWY_TARGET == HWY_AVX3
    for (; row + kSumLanes <= rows; row += kSumLanes) {
      hn::StoreU(fold_rows(lanes + row), FloatTag(), sums + row);
    }
#endif
    for (; row < rows; ++row) {
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

#if HWY_TARGET == HWY_AVX3
  /// The tree of fold() for 16 rows at once: each level adds the halves of two vectors' rows, so
  /// that a vector holds twice as many of them.
  static HWY_INLINE FloatVec fold_rows(const float (*rows)[kSumLanes]) {
    __m512 v[kSumLanes];
    for (int r = 0; r < kSumLanes; ++r) v[r] = _mm512_load_ps(rows[r]);
    for (int r = 0; r < 8; ++r) {  // rows 2r and 2r + 1, 8 lanes each
      v[r] = _mm512_add_ps(_mm512_shuffle_f32x4(v[2 * r], v[2 * r + 1], 0x44),
                           _mm512_shuffle_f32x4(v[2 * r], v[2 * r + 1], 0xee));
    }
    for (int r = 0; r < 4; ++r) {  // rows 4r …, a quarter each
      v[r] = _mm512_add_ps(_mm512_shuffle_f32x4(v[2 * r], v[2 * r + 1], 0x88),
                           _mm512_shuffle_f32x4(v[2 * r], v[2 * r + 1], 0xdd));
    }
    for (int r = 0; r < 2; ++r) {  // rows 8r …: in each quarter two lanes of a row and of another
      v[r] = _mm512_add_ps(_mm512_shuffle_ps(v[2 * r], v[2 * r + 1], 0x44),
                           _mm512_shuffle_ps(v[2 * r], v[2 * r + 1], 0xee));
    }
    v[0] = _mm512_add_ps(_mm512_shuffle_ps(v[0], v[1], 0x88), _mm512_shuffle_ps(v[0], v[1], 0xdd));
    // Quarter i now has rows i, i + 4, i + 8 and i + 12.
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    return FloatVec{_mm512_permutexvar_ps(order, v[0])};
  }
#endif
};

}  // namespace attnscope::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
