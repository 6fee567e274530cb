#pragma once

#include "device_intrinsics.h"

// Emulation of kernels/cuda/kernel/nvcc/warpgroup.h: the same functions, with the contract there.

namespace attnscope::cuda::emulation {

void change_registers(int count, bool up);
void init_barrier(std::uint64_t* barrier, unsigned arrivals);
void arrive_at_barrier(std::uint64_t* barrier, unsigned expected_bytes);
void wait_for_barrier(std::uint64_t* barrier, unsigned parity);
void start_bulk_copy(void* shared, const void* global, unsigned bytes, std::uint64_t* barrier);
void begin_products(float* d, unsigned count);
void start_product(float* d, const void* a, const void* b, bool add, bool half);
void commit_products();
void wait_for_products(float* d, unsigned count);

}  // namespace attnscope::cuda::emulation

namespace attnscope::cuda {

template <int kCount>
__device__ inline void registers_down() {
  static_assert(kCount % 8 == 0 && kCount >= 24 && kCount <= 240);
  emulation::change_registers(kCount, false);
}

template <int kCount>
__device__ inline void registers_up() {
  static_assert(kCount % 8 == 0 && kCount >= 24 && kCount <= 240);
  emulation::change_registers(kCount, true);
}

__device__ inline void barrier_init(std::uint64_t* barrier, unsigned arrivals) {
  emulation::init_barrier(barrier, arrivals);
}
__device__ inline void barrier_init_fence() {}
__device__ inline void barrier_arrive(std::uint64_t* barrier) {
  emulation::arrive_at_barrier(barrier, 0);
}
__device__ inline void barrier_arrive_expect(std::uint64_t* barrier, unsigned bytes) {
  emulation::arrive_at_barrier(barrier, bytes);
}
__device__ inline void barrier_wait(std::uint64_t* barrier, unsigned parity) {
  emulation::wait_for_barrier(barrier, parity);
}

__device__ inline void copy_bulk(void* shared, const void* global, unsigned bytes,
                                 std::uint64_t* barrier) {
  emulation::start_bulk_copy(shared, global, bytes, barrier);
}

template <int kGroups>
__device__ inline void wgmma_begin(float (&d)[kGroups][4]) {
  emulation::begin_products(&d[0][0], kGroups * 4);
}

template <int kPieces, int kGroups>
__device__ inline void wgmma_begin(float (&d)[kPieces][kGroups][4]) {
  emulation::begin_products(&d[0][0][0], kPieces * kGroups * 4);
}

__device__ inline void wgmma_64x128x16(float (&d)[16][4], const void* a, const void* b, bool add,
                                       HalfTag) {
  emulation::start_product(&d[0][0], a, b, add, true);
}

__device__ inline void wgmma_64x128x16(float (&d)[16][4], const void* a, const void* b, bool add,
                                       BfloatTag) {
  emulation::start_product(&d[0][0], a, b, add, false);
}

__device__ inline void wgmma_commit() { emulation::commit_products(); }

template <int kGroups>
__device__ inline void wgmma_wait(float (&d)[kGroups][4]) {
  emulation::wait_for_products(&d[0][0], kGroups * 4);
}

template <int kPieces, int kGroups>
__device__ inline void wgmma_wait(float (&d)[kPieces][kGroups][4]) {
  emulation::wait_for_products(&d[0][0][0], kPieces * kGroups * 4);
}

}  // namespace attnscope::cuda
