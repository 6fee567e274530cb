// The tile unit's kernels for f16 numbers as they are; a file of their own because compiling them
// takes long.
#include "kernels/cpu/simd/cpu_dispatch.h"

#include "kernels/cpu/simd/targets.h"

#define HWY_TARGET_INCLUDE "kernels/cpu/simd/cpu_dispatch_f16_tiles.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "kernels/cpu/simd/exp2-inl.h"
#include "kernels/cpu/simd/key_rows.h"
#include "kernels/cpu/simd/lane_totals-inl.h"
#include "kernels/cpu/simd/stored_forms-inl.h"
#include "kernels/cpu/simd/tile_kernels-inl.h"
#include "kernels/cpu/simd/tile_registers-inl.h"

#if HWY_NATIVE_FMA
HWY_BEFORE_NAMESPACE();
#define ATTNSCOPE_DOT_NAMESPACE f16_tiles_emulated
#define ATTNSCOPE_TILES EmulatedF16Tiles
#include "kernels/cpu/simd/tile_product-inl.h"
// Behind it.
#include "kernels/cpu/simd/key_row_product-inl.h"
#include "kernels/cpu/simd/tile_runs-inl.h"
#undef ATTNSCOPE_TILES
#undef ATTNSCOPE_DOT_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_TARGET == HWY_AVX3
HWY_BEFORE_NAMESPACE();
#define ATTNSCOPE_DOT_NAMESPACE f16_tiles_native
#define ATTNSCOPE_TILES NativeF16Tiles
#include "kernels/cpu/simd/tile_product-inl.h"
// Behind it.
#include "kernels/cpu/simd/key_row_product-inl.h"
#include "kernels/cpu/simd/tile_runs-inl.h"
#undef ATTNSCOPE_TILES
#undef ATTNSCOPE_DOT_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

namespace attnscope::HWY_NAMESPACE {

CpuKernels::Products f16_tile_kernels(bool native) {
#if HWY_TARGET == HWY_AVX3
  if (native) return f16_tiles_native::kernels();
#endif
#if HWY_NATIVE_FMA
  if (!native) return f16_tiles_emulated::kernels();
#endif
  (void)native;
  return {};
}

}  // namespace attnscope::HWY_NAMESPACE
