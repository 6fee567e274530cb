#pragma once

#include <device_intrinsics.h>

#include <cstdint>
#include <cute/arch/copy_sm90_tma.hpp>
#include <cute/arch/mma_sm90_gmma.hpp>
#include <utility>

// Tensor cores, barriers and bulk copies of sm_90a (PTX ISA 8.0 and later), by CuTe's atoms where
// it has them. Kernels include this header as <warpgroup.h>, and tests find another one of that
// name (device_intrinsics.h). A warpgroup is four warps of which the first thread's number is a
// multiple of 128. Builds for other devices compile these functions too, where nothing launches
// them.
#if defined(__CUDA_ARCH__) && !defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define ATTNSCOPE_SM90A_ONLY(...) __trap()
#else
#define ATTNSCOPE_SM90A_ONLY(...) __VA_ARGS__
#endif

namespace attnscope::cuda {

/// Every thread of the calling warpgroup may use kCount registers from now on; a multiple of 8 from
/// 24 to 240 (setmaxnreg). The block's must fit the multiprocessor's: those that ask for more wait
/// for those that give some back.
template <int kCount>
__device__ inline void registers_down() {
  ATTNSCOPE_SM90A_ONLY(asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kCount)));
}
template <int kCount>
__device__ inline void registers_up() {
  ATTNSCOPE_SM90A_ONLY(asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kCount)));
}

/// A barrier in shared memory (mbarrier): its phase ends when `arrivals` threads have arrived and
/// all bytes that they said to expect are there. Phases are counted from 0; waiting for the parity
/// of a phase returns once it has ended, and for parity 1 before the first has. By one thread.
__device__ inline void barrier_init(uint64_t* barrier, unsigned arrivals) {
  ATTNSCOPE_SM90A_ONLY(asm volatile(
      "mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(cute::cast_smem_ptr_to_uint(barrier)),
      "r"(arrivals)
      : "memory"));
}

/// Behind the barrier_init of a thread; the block's other threads see them after a block_barrier.
__device__ inline void barrier_init_fence() {
  ATTNSCOPE_SM90A_ONLY(asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"));
}

__device__ inline void barrier_arrive(uint64_t* barrier) {
  ATTNSCOPE_SM90A_ONLY(asm volatile(
      "mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(cute::cast_smem_ptr_to_uint(barrier))
      : "memory"));
}

/// Arrives, and lets the phase wait for this many bytes of bulk copies too.
__device__ inline void barrier_arrive_expect(uint64_t* barrier, unsigned bytes) {
  ATTNSCOPE_SM90A_ONLY(asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(
                                        cute::cast_smem_ptr_to_uint(barrier)),
                                    "r"(bytes)
                                    : "memory"));
}

/// True where the phase of this parity has ended; waits a while for it (mbarrier.try_wait).
__device__ inline bool barrier_try_wait(uint64_t* barrier, unsigned parity) {
  unsigned ended = 1;
  ATTNSCOPE_SM90A_ONLY(
      asm volatile("{\n"
                   "  .reg .pred ended;\n"
                   "  mbarrier.try_wait.parity.shared::cta.b64 ended, [%1], %2;\n"
                   "  selp.u32 %0, 1, 0, ended;\n"
                   "}"
                   : "=r"(ended)
                   : "r"(cute::cast_smem_ptr_to_uint(barrier)), "r"(parity)
                   : "memory"));
  return ended != 0;
}

/// Nanoseconds of a clock that all multiprocessors share.
__device__ inline uint64_t global_nanoseconds() {
  uint64_t now = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

/// Returns when the phase of this parity has ended. What should take microseconds and takes seconds
/// is a mistake: the launch then fails instead of keeping the device for ever. How long a try waits
/// is the device's own choice, so that tries are not counted.
__device__ inline void barrier_wait(uint64_t* barrier, unsigned parity) {
  constexpr uint64_t kMostNanoseconds = 5'000'000'000;
  if (barrier_try_wait(barrier, parity)) return;
  const uint64_t start = global_nanoseconds();
  while (!barrier_try_wait(barrier, parity)) {
    if (global_nanoseconds() - start > kMostNanoseconds) __trap();
  }
}

/// Starts a copy by the bulk copy engine (cp.async.bulk): addresses and bytes are multiples of 16.
/// The barrier, told to expect them, gets the bytes as they arrive. By one thread.
__device__ inline void copy_bulk(void* shared, const void* global, unsigned bytes,
                                 uint64_t* barrier) {
  ATTNSCOPE_SM90A_ONLY(
      cute::SM90_BULK_COPY_G2S::copy(global, barrier, shared, static_cast<int32_t>(bytes)));
}

/// The wgmma that follow may write these accumulators, which nothing else touches until wgmma_wait:
/// those of one piece, or of several.
template <int kGroups>
__device__ inline void wgmma_fence(float (&d)[kGroups][4]) {
#pragma unroll
  for (auto& group : d) {
#pragma unroll
    for (float& value : group) cute::warpgroup_fence_operand(value);
  }
}
template <int kGroups>
__device__ inline void wgmma_begin(float (&d)[kGroups][4]) {
  wgmma_fence(d);
  ATTNSCOPE_SM90A_ONLY(cute::warpgroup_arrive());
}
template <int kPieces, int kGroups>
__device__ inline void wgmma_begin(float (&d)[kPieces][kGroups][4]) {
#pragma unroll
  for (auto& piece : d) wgmma_fence(piece);
  ATTNSCOPE_SM90A_ONLY(cute::warpgroup_arrive());
}

/// The descriptor by which a wgmma finds 64 or 128 rows in shared memory, of 64 channels of 16
/// bits, units swizzled as kChunkChannels says: where they begin, plus 32 bytes for each 16
/// channels that are left out; 1024 bytes from eight rows to the next; the 128-byte swizzle.
__device__ inline uint64_t wgmma_operand(const void* shared) {
  constexpr uint64_t kEightRows = (1024 >> 4);
  constexpr uint64_t kSwizzle128 = 1;
  const uint64_t start = (cute::cast_smem_ptr_to_uint(shared) & 0x3ffff) >> 4;
  return start | uint64_t{1} << 16 | kEightRows << 32 | kSwizzle128 << 62;
}

template <class Atom, size_t... kIndex>
__device__ inline void wgmma_call(float* d, uint64_t a, uint64_t b, bool add,
                                  std::index_sequence<kIndex...>) {
  Atom::fma(a, b, d[kIndex]...,
            add ? cute::SM90::GMMA::ScaleOut::One : cute::SM90::GMMA::ScaleOut::Zero);
}

/// d = a·bᵀ (+ d) for 64 rows a and 128 rows b of 16 channels each, see wgmma_operand, by the whole
/// warpgroup, which must call it with the same operands. Of warp w, d holds rows 16 w … as
/// mma_16x8x16 does, for every eight rows of b. Done after wgmma_commit and wgmma_wait; until then
/// neither d nor the rows may be touched.
__device__ inline void wgmma_64x128x16(float (&d)[16][4], const void* a, const void* b, bool add,
                                       HalfTag) {
  using Atom = cute::SM90::GMMA::MMA_64x128x16_F32F16F16_SS<cute::SM90::GMMA::Major::K,
                                                            cute::SM90::GMMA::Major::K>;
  ATTNSCOPE_SM90A_ONLY(wgmma_call<Atom>(&d[0][0], wgmma_operand(a), wgmma_operand(b), add,
                                        std::make_index_sequence<64>()));
}

__device__ inline void wgmma_64x128x16(float (&d)[16][4], const void* a, const void* b, bool add,
                                       BfloatTag) {
  using Atom = cute::SM90::GMMA::MMA_64x128x16_F32BF16BF16_SS<cute::SM90::GMMA::Major::K,
                                                              cute::SM90::GMMA::Major::K>;
  ATTNSCOPE_SM90A_ONLY(wgmma_call<Atom>(&d[0][0], wgmma_operand(a), wgmma_operand(b), add,
                                        std::make_index_sequence<64>()));
}

/// The warpgroup's products since the last call are one group.
__device__ inline void wgmma_commit() { ATTNSCOPE_SM90A_ONLY(cute::warpgroup_commit_batch()); }

/// Waits for all of them.
template <int kGroups>
__device__ inline void wgmma_wait(float (&d)[kGroups][4]) {
  ATTNSCOPE_SM90A_ONLY(cute::warpgroup_wait<0>());
  wgmma_fence(d);
}
template <int kPieces, int kGroups>
__device__ inline void wgmma_wait(float (&d)[kPieces][kGroups][4]) {
  ATTNSCOPE_SM90A_ONLY(cute::warpgroup_wait<0>());
#pragma unroll
  for (auto& piece : d) wgmma_fence(piece);
}

}  // namespace attnscope::cuda

#undef ATTNSCOPE_SM90A_ONLY
