// The tile unit's instructions (AMX) behind names of their own, and an emulation of them that gives
// the same bytes on every processor with fused multiply-adds. Compiled once for each instruction
// set; the instructions themselves only beside AVX-512.
//
// Tiles are eight registers of 16 rows of 64 bytes; numbers of tiles are constants of instructions.
// With 32-bit elements a[16][16] and b[16][16] of two bf16 numbers each, multiply() adds to c[m][n]
// the sum over k of a[m][k]·b[k][n], both numbers: one chain of fused multiply-adds over the low
// ones, one over the high ones, both from 0 in the order of k, then c += low + high, every result
// rounded to nearest. Subnormal operands and results count as 0 (Intel, "Architecture Instruction
// Set Extensions Programming Reference", TDPBF16PS); the emulation needs FlushDenormals for that.
// Of f16 numbers (TDPFP16PS there) it does the same, but for subnormal ones, which count in full;
// no sum of theirs is a subnormal float32 number.
#if defined(ATTNSCOPE_KERNELS_TILE_REGISTERS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTNSCOPE_KERNELS_TILE_REGISTERS_INL_H
#undef ATTNSCOPE_KERNELS_TILE_REGISTERS_INL_H
#else
#define ATTNSCOPE_KERNELS_TILE_REGISTERS_INL_H
#endif

#include <hwy/highway.h>

#include <cstdint>
#include <cstring>

#include "kernels/cpu/simd/exp2-inl.h"
#include "kernels/cpu/simd/lane_totals-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attnscope::HWY_NAMESPACE {

inline constexpr int kTileSide = 16;

/// The numbers of pairs of bf16, widened.
struct Bf16Pairs {
  template <class V>
  static HWY_INLINE FloatVec low(V pairs) {
    return hn::BitCast(FloatTag(), hn::ShiftLeft<16>(pairs));
  }
  template <class V>
  static HWY_INLINE FloatVec high(V pairs) {
    const hn::RebindToUnsigned<FloatTag> du;
    return hn::BitCast(FloatTag(), hn::And(pairs, hn::Set(du, 0xffff0000u)));
  }
};

/// The numbers of pairs of f16, widened.
struct F16Pairs {
  template <class V>
  static HWY_INLINE FloatVec low(V pairs) {
    const hn::RebindToUnsigned<FloatTag> du;
    return widen(hn::And(pairs, hn::Set(du, 0xffffu)));
  }
  template <class V>
  static HWY_INLINE FloatVec high(V pairs) {
    return widen(hn::ShiftRight<16>(pairs));
  }

 private:
  template <class V>
  static HWY_INLINE FloatVec widen(V bits) {
    const hn::Rebind<uint16_t, FloatTag> half;
    const hn::Rebind<hwy::float16_t, FloatTag> number;
    return hn::PromoteTo(FloatTag(), hn::BitCast(number, hn::TruncateTo(half, bits)));
  }
};

template <class Pairs>
class EmulatedTilesOf {
 public:
  static constexpr bool kNative = false;
  using Shift = PlainShift;

  template <int kTile>
  HWY_NOINLINE void zero() {
    std::memset(tiles_[kTile], 0, sizeof tiles_[kTile]);
  }

  /// Rows of 64 bytes that lie `stride` bytes apart.
  template <int kTile>
  HWY_NOINLINE void load(const void* rows, int64_t stride) {
    for (int64_t r = 0; r < kTileSide; ++r) {
      std::memcpy(tiles_[kTile][r], static_cast<const char*>(rows) + r * stride, kTileSide * 4);
    }
  }

  template <int kTile>
  HWY_NOINLINE void store(void* rows, int64_t stride) const {
    for (int64_t r = 0; r < kTileSide; ++r) {
      std::memcpy(static_cast<char*>(rows) + r * stride, tiles_[kTile][r], kTileSide * 4);
    }
  }

  template <int kSum, int kA, int kB>
  HWY_NOINLINE void multiply() {
    const FloatTag d;
    const hn::RebindToUnsigned<FloatTag> du;
    for (int64_t n = 0; n < kTileSide; n += kLanes) {
      for (int64_t m = 0; m < kTileSide; ++m) {
        FloatVec low = hn::Zero(d);
        FloatVec high = hn::Zero(d);
        for (int64_t k = 0; k < kTileSide; ++k) {
          const auto a = hn::Set(du, tiles_[kA][m][k]);
          const auto b = hn::Load(du, tiles_[kB][k] + n);
          low = hn::MulAdd(Pairs::low(a), Pairs::low(b), low);
          high = hn::MulAdd(Pairs::high(a), Pairs::high(b), high);
        }
        uint32_t* sum = tiles_[kSum][m] + n;
        const FloatVec before = hn::BitCast(d, hn::Load(du, sum));
        hn::Store(hn::BitCast(du, hn::Add(before, hn::Add(low, high))), du, sum);
      }
    }
  }

 private:
  alignas(64) uint32_t tiles_[8][kTileSide][kTileSide];
};
using EmulatedTiles = EmulatedTilesOf<Bf16Pairs>;
using EmulatedF16Tiles = EmulatedTilesOf<F16Pairs>;

#if HWY_TARGET == HWY_AVX3
/// The shift of NarrowExpTable by vpmultishiftqb (AVX512_VBMI, which every processor with tiles
/// has): a plain shift would wait for the only port that multiplies beside tile instructions.
class ByteShift {
 public:
  /// In the bits below stand parts of the upper ones, which are those of 1.5·2²³.
  static constexpr int32_t kResidue = 0x14b4b;

  ByteShift() : places_(_mm512_set1_epi64(0x261e3838'063e1818)) {}

  template <class V>
  HWY_INLINE V shift(V bits) const {
    V shifted;
    asm("vpmultishiftqb %2, %1, %0" : "=v"(shifted.raw) : "v"(places_), "v"(bits.raw));
    return shifted;
  }

 private:
  /// First bit of each byte of the result, counted in 64: of the lower element from 6 and from −2
  /// on, then its uppermost byte twice; of the upper element the same.
  __m512i places_;
};

/// Configures the thread's tiles while it lives. The instructions are written out because GCC 12's
/// intrinsics do not tell the compiler which memory they read: it may drop the stores before them.
/// Needs a process that is allowed to use tiles (kernels/common/tile_unit.h).
class NativeTiles {
 public:
  static constexpr bool kNative = true;
  using Shift = ByteShift;

  NativeTiles() {
    // Intel's layout: palette 1 has these tiles; all rows and bytes of each.
    struct alignas(64) {
      uint8_t palette = 1;
      uint8_t start_row = 0;
      uint8_t reserved[14] = {};
      uint16_t row_bytes[16] = {};
      uint8_t rows[16] = {};
    } config;
    static_assert(sizeof config == 64);
    for (int tile = 0; tile < 8; ++tile) {
      config.row_bytes[tile] = 64;
      config.rows[tile] = kTileSide;
    }
    asm volatile("ldtilecfg %0" : : "m"(config));
  }
  ~NativeTiles() { asm volatile("tilerelease" : : : "memory"); }
  NativeTiles(const NativeTiles&) = delete;
  NativeTiles& operator=(const NativeTiles&) = delete;

  template <int kTile>
  HWY_INLINE void zero() {
    asm volatile("tilezero %%tmm%c0" : : "i"(kTile));
  }
  template <int kTile>
  HWY_INLINE void load(const void* rows, int64_t stride) {
    asm volatile("tileloadd (%1,%2,1), %%tmm%c0" : : "i"(kTile), "r"(rows), "r"(stride) : "memory");
  }
  template <int kTile>
  HWY_INLINE void store(void* rows, int64_t stride) const {
    asm volatile("tilestored %%tmm%c0, (%1,%2,1)"
                 :
                 : "i"(kTile), "r"(rows), "r"(stride)
                 : "memory");
  }
  template <int kSum, int kA, int kB>
  HWY_INLINE void multiply() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSum), "i"(kA), "i"(kB));
  }
};

/// NativeTiles of f16 numbers.
class NativeF16Tiles : public NativeTiles {
 public:
  template <int kSum, int kA, int kB>
  HWY_INLINE void multiply() {
    asm volatile("tdpfp16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSum), "i"(kA), "i"(kB));
  }
};
#endif

}  // namespace attnscope::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
