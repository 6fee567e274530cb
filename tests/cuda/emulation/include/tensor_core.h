#pragma once

#include "device_intrinsics.h"

// Emulation of kernels/cuda/kernel/nvcc/tensor_core.h: the same functions, with the contract there.

namespace attnscope::cuda::emulation {

void multiply_half(float* d, const unsigned* a, const unsigned* b);
void multiply_bfloat(float* d, const unsigned* a, const unsigned* b);
void load_matrices(unsigned* r, const void* shared_row);
void start_copy_16(void* shared, const void* global, bool valid);
void commit_copies();
void wait_for_copies(unsigned left);

}  // namespace attnscope::cuda::emulation

namespace attnscope::cuda {

__device__ inline void mma_16x8x16(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2],
                                   HalfTag) {
  emulation::multiply_half(d, a, b);
}

__device__ inline void mma_16x8x16(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2],
                                   BfloatTag) {
  emulation::multiply_bfloat(d, a, b);
}

__device__ inline void load_matrix_x4(unsigned (&r)[4], const void* shared_row) {
  emulation::load_matrices(r, shared_row);
}

__device__ inline void copy_async_16(void* shared, const void* global, bool valid) {
  emulation::start_copy_16(shared, global, valid);
}

__device__ inline void copy_async_commit() { emulation::commit_copies(); }

template <int kLeft>
__device__ inline void copy_async_wait() {
  static_assert(kLeft >= 0);
  emulation::wait_for_copies(kLeft);
}

}  // namespace attnscope::cuda
