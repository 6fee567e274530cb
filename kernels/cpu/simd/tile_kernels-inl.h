// Kernels of the tile unit, for cpu_dispatch.cpp; declared once for each instruction set.
#if defined(ATTNSCOPE_KERNELS_TILE_KERNELS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTNSCOPE_KERNELS_TILE_KERNELS_INL_H
#undef ATTNSCOPE_KERNELS_TILE_KERNELS_INL_H
#else
#define ATTNSCOPE_KERNELS_TILE_KERNELS_INL_H
#endif

#include <hwy/highway.h>

#include "kernels/cpu/simd/cpu_kernels.h"

namespace attnscope::HWY_NAMESPACE {

/// CpuKernels::tiles, and where not `native`, CpuKernels::tiles_emulated. Null where this
/// instruction set has none; whether the processor has the unit is not asked.
CpuKernels::Products bf16_tile_kernels(bool native);
/// CpuKernels::f16_tiles and f16_tiles_emulated, likewise.
CpuKernels::Products f16_tile_kernels(bool native);

}  // namespace attnscope::HWY_NAMESPACE

#endif  // include guard
