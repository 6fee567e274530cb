#pragma once

// The operations of a device that kernels need beyond C++, as nvcc compiles them. Kernels include
// this header as <device_intrinsics.h>: tests find another one of that name, which runs on the CPU.
// Both keep to this contract:
//  - A kernel's shared memory is what its launch asks for; there is no other.
//  - Warp operations (shuffle*, warp_any, warp_barrier) are for whole warps: all 32 lanes of the
//    calling thread's warp call the same one, and blocks have a multiple of 32 threads.
//  - block_barrier is for whole blocks: no thread may have ended, or wait at anything else.
// Instructions are those of the PTX ISA that their names are given with, for sm_80 and later.

namespace attnscope::cuda {

/// The types of 16 bits that tensor cores take.
struct HalfTag {};
struct BfloatTag {};

/// The block's shared memory, aligned to 1024 bytes; undefined at first.
__device__ inline unsigned char* dynamic_shared_memory() {
  extern __shared__ __align__(1024) unsigned char attnscope_dynamic_shared[];
  return attnscope_dynamic_shared;
}

/// 2^x to 2 units in the last place; results and arguments below 2^-126 are taken as 0.
__device__ inline float exp2_fast(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

/// The binary logarithm, absolute error below 2^-22; arguments below 2^-126 are taken as 0.
__device__ inline float log2_fast(float x) {
  float result;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

/// 1 / x to 1 unit in the last place; results below 2^-126 are taken as 0 (rcp.approx.ftz).
__device__ inline float reciprocal_fast(float x) {
  float result;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

/// The larger one; NaN where either is (max.NaN).
__device__ inline float larger_or_nan(float a, float b) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  float result;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
#else
  return a != a ? a : b != b ? b : fmaxf(a, b);
#endif
}

/// All lanes of a warp. The compiler knows that its own intrinsics must not be moved to where lanes
/// go different ways, which it need not know of assembly.
inline constexpr unsigned kWholeWarp = 0xffffffff;

/// The v of the lane whose number differs from the caller's in the bits of mask (shfl.sync.bfly);
/// of 4 or 8 bytes.
template <typename T>
__device__ inline T shuffle_xor(T v, int mask) {
  return __shfl_xor_sync(kWholeWarp, v, mask);
}

/// The v of this lane, counted modulo 32 (shfl.sync.idx); of 4 or 8 bytes.
template <typename T>
__device__ inline T shuffle(T v, int lane) {
  return __shfl_sync(kWholeWarp, v, lane);
}

/// True where value is true in any lane (vote.sync.any).
__device__ inline bool warp_any(bool value) { return __any_sync(kWholeWarp, value ? 1 : 0) != 0; }

/// Every thread's writes before it are seen by every thread of the block behind it (bar.sync).
__device__ inline void block_barrier() { __syncthreads(); }

/// Every lane's writes before it are seen by every lane of the warp behind it (bar.warp.sync).
__device__ inline void warp_barrier() { __syncwarp(kWholeWarp); }

/// To nearest even, overflow to infinity, NaN to 0x7fff (cvt.rn).
__device__ inline unsigned short to_half_bits(float value) {
  unsigned short bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}

__device__ inline unsigned short to_bfloat_bits(float value) {
  unsigned short bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}

/// Exact.
__device__ inline float from_half_bits(unsigned short bits) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
}

__device__ inline float from_bfloat_bits(unsigned short bits) {
  return __uint_as_float(static_cast<unsigned>(bits) << 16);
}

/// In any order with those of other threads of the grid, and ordering nothing else
/// (red.relaxed.gpu).
__device__ inline void add_atomic(unsigned long long* target, unsigned long long value) {
  asm volatile("red.relaxed.gpu.add.u64 [%0], %1;" ::"l"(target), "l"(value) : "memory");
}

__device__ inline void add_atomic(int* target, int value) {
  asm volatile("red.relaxed.gpu.add.s32 [%0], %1;" ::"l"(target), "r"(value) : "memory");
}

__device__ inline void max_atomic(int* target, int value) {
  asm volatile("red.relaxed.gpu.max.s32 [%0], %1;" ::"l"(target), "r"(value) : "memory");
}

}  // namespace attnscope::cuda
