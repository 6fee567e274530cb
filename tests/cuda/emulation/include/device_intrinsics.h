#pragma once

#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "cuda_runtime.h"

// Emulation of kernels/cuda/kernel/nvcc/device_intrinsics.h: the same functions, with the contract
// there.

namespace attnscope::cuda::emulation {

unsigned char* shared_of_block();
void wait_for_block();
void wait_for_warp();
std::uint64_t exchange(std::uint64_t value, unsigned source_lane);
bool any_of_warp(bool value);
unsigned lane_of_thread();
std::uint64_t surplus_of_sum(std::uint64_t value);
unsigned short half_bits(float value);
float half_value(unsigned short bits);

}  // namespace attnscope::cuda::emulation

namespace attnscope::cuda {

struct HalfTag {};
struct BfloatTag {};

__device__ inline unsigned char* dynamic_shared_memory() { return emulation::shared_of_block(); }

constexpr float kSmallestNormalFloat = 0x1p-126f;

__device__ inline float exp2_fast(float x) {
  const float result = std::exp2(x);
  return result < kSmallestNormalFloat ? 0.0f : result;
}

__device__ inline float log2_fast(float x) {
  return std::log2(std::fabs(x) < kSmallestNormalFloat ? std::copysign(0.0f, x) : x);
}

__device__ inline float reciprocal_fast(float x) {
  const float result = 1.0f / (std::fabs(x) < kSmallestNormalFloat ? std::copysign(0.0f, x) : x);
  return std::fabs(result) < kSmallestNormalFloat ? std::copysign(0.0f, result) : result;
}

__device__ inline float larger_or_nan(float a, float b) {
  return std::isnan(a) ? a : std::isnan(b) ? b : std::fmax(a, b);
}

#define ATTNSCOPE_EMULATED_SHUFFLES(type)                                                        \
  __device__ inline type shuffle(type v, int lane) {                                             \
    std::uint64_t bits = 0;                                                                      \
    std::memcpy(&bits, &v, sizeof(v));                                                           \
    bits = emulation::exchange(bits, static_cast<unsigned>(lane) % 32);                          \
    std::memcpy(&v, &bits, sizeof(v));                                                           \
    return v;                                                                                    \
  }                                                                                              \
  __device__ inline type shuffle_xor(type v, int mask) {                                         \
    return shuffle(v,                                                                            \
                   static_cast<int>(emulation::lane_of_thread() ^ static_cast<unsigned>(mask))); \
  }

ATTNSCOPE_EMULATED_SHUFFLES(unsigned)
ATTNSCOPE_EMULATED_SHUFFLES(int)
ATTNSCOPE_EMULATED_SHUFFLES(float)
ATTNSCOPE_EMULATED_SHUFFLES(double)
#undef ATTNSCOPE_EMULATED_SHUFFLES

__device__ inline bool warp_any(bool value) { return emulation::any_of_warp(value); }
__device__ inline void block_barrier() { emulation::wait_for_block(); }
__device__ inline void warp_barrier() { emulation::wait_for_warp(); }

__device__ inline unsigned short to_half_bits(float value) { return emulation::half_bits(value); }
__device__ inline float from_half_bits(unsigned short bits) { return emulation::half_value(bits); }

__device__ inline unsigned short to_bfloat_bits(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffff) > 0x7f800000) {
    return 0x7fff;
  }
  return static_cast<unsigned short>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

__device__ inline float from_bfloat_bits(unsigned short bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

__device__ inline void add_atomic(unsigned long long* target, unsigned long long value) {
  std::atomic_ref(*target).fetch_add(value + emulation::surplus_of_sum(value),
                                     std::memory_order_relaxed);
}

__device__ inline void add_atomic(int* target, int value) {
  std::atomic_ref(*target).fetch_add(value, std::memory_order_relaxed);
}

__device__ inline void max_atomic(int* target, int value) {
  std::atomic_ref<int> shared(*target);
  int seen = shared.load(std::memory_order_relaxed);
  while (seen < value && !shared.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

}  // namespace attnscope::cuda
