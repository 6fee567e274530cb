#pragma once

#include <device_intrinsics.h>

#include <cute/arch/copy_sm75.hpp>
#include <cute/arch/copy_sm80.hpp>
#include <cute/arch/mma_sm80.hpp>

// Tensor cores and the copies that feed them, by CuTe's atoms; for sm_80 and later. Kernels include
// this header as <tensor_core.h>, and tests find another one of that name (device_intrinsics.h).
// A build for several devices compiles them for older ones too, where nothing launches them and
// CuTe's atoms would be code that prints why they cannot run.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#define ATTNSCOPE_ATOM(...) __trap()
#else
#define ATTNSCOPE_ATOM(...) __VA_ARGS__
#endif

namespace attnscope::cuda {

/// d += a·b for a [16, 16] and b [16, 8] of 16 bits, sums in float, by the whole warp
/// (mma.sync.m16n8k16). With g = lane / 4 and t = lane % 4, two elements a register, the lower bits
/// first: a holds columns 2t, 2t + 1 of rows g and g + 8, then columns 2t + 8, 2t + 9 of both; b
/// holds rows 2t, 2t + 1, then 2t + 8, 2t + 9, of column g; d holds columns 2t, 2t + 1 of row g,
/// then of row g + 8.
__device__ inline void mma_16x8x16(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2],
                                   HalfTag) {
  ATTNSCOPE_ATOM(cute::SM80_16x8x16_F32F16F16F32_TN::fma(d[0], d[1], d[2], d[3], a[0], a[1], a[2],
                                                         a[3], b[0], b[1], d[0], d[1], d[2], d[3]));
}

__device__ inline void mma_16x8x16(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2],
                                   BfloatTag) {
  ATTNSCOPE_ATOM(cute::SM80_16x8x16_F32BF16BF16F32_TN::fma(
      d[0], d[1], d[2], d[3], a[0], a[1], a[2], a[3], b[0], b[1], d[0], d[1], d[2], d[3]));
}

/// Four matrices of 8 rows of 16 bytes in shared memory, by the whole warp (ldmatrix.x4): lane l
/// gives the address, a multiple of 16, of row l % 8 of matrix l / 8, and gets in r[j] elements
/// 2 (l % 4) and the next of row l / 4 of matrix j.
__device__ inline void load_matrix_x4(unsigned (&r)[4], const void* shared_row) {
  cute::SM75_U32x4_LDSM_N::copy(*static_cast<const cute::uint128_t*>(shared_row), r[0], r[1], r[2],
                                r[3]);
}

/// Starts a copy of 16 bytes, both addresses multiples of 16 (cp.async.cg). Unless valid, global is
/// not read and zeros are written. What the target holds is undefined until the thread has
/// committed and waited, and for other threads until a barrier behind that; every copy must be
/// waited for.
__device__ inline void copy_async_16(void* shared, const void* global, bool valid) {
  ATTNSCOPE_ATOM(cute::SM80_CP_ASYNC_CACHEGLOBAL_ZFILL<cute::uint128_t>::copy(
      *static_cast<const cute::uint128_t*>(global), *static_cast<cute::uint128_t*>(shared), valid));
}

/// The thread's copies since the last call are one group.
__device__ inline void copy_async_commit() { cute::cp_async_fence(); }

/// Waits for all of the thread's groups but the latest kLeft. With 0 left, every copy must be
/// committed.
template <int kLeft>
__device__ inline void copy_async_wait() {
  static_assert(kLeft >= 0);
  cute::cp_async_wait<kLeft>();
  // CuTe's instruction does not tell the compiler that memory has changed.
  asm volatile("" ::: "memory");
}

}  // namespace attnscope::cuda

#undef ATTNSCOPE_ATOM
