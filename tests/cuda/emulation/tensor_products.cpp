#include "tests/cuda/emulation/tensor_products.h"

#include <cstring>

#include "tests/cuda/emulation/number_formats.h"

namespace attnscope::cuda::emulation {
namespace {

constexpr std::size_t kEight = 8;

/// Of kRows rows, whose sums do not wait for each other, the eight columns from b and sums on.
template <std::size_t kRows>
[[gnu::always_inline]] inline void add_eight(const float* a, const float* b, std::size_t k,
                                             std::size_t n, float* sums) {
  Float8 eight[kRows];
  for (std::size_t i = 0; i < kRows; ++i) std::memcpy(&eight[i], sums + i * n, sizeof(Float8));
  for (std::size_t p = 0; p < k; ++p) {
    Float8 b_row;
    std::memcpy(&b_row, b + p * n, sizeof(b_row));
    for (std::size_t i = 0; i < kRows; ++i) eight[i] += a[i * k + p] * b_row;
  }
  for (std::size_t i = 0; i < kRows; ++i) std::memcpy(sums + i * n, &eight[i], sizeof(Float8));
}

[[gnu::always_inline]] inline void add_all(const float* a, const float* b, std::size_t m,
                                           std::size_t k, std::size_t n, float* sums) {
  const std::size_t whole = n - n % kEight;
  for (std::size_t j = 0; j < whole; j += kEight) {
    std::size_t i = 0;
    for (; i + 2 <= m; i += 2) add_eight<2>(a + i * k, b + j, k, n, sums + i * n + j);
    if (i < m) add_eight<1>(a + i * k, b + j, k, n, sums + i * n + j);
  }
  for (std::size_t i = 0; i < m; ++i) {
    for (std::size_t j = whole; j < n; ++j) {
      for (std::size_t p = 0; p < k; ++p) sums[i * n + j] += a[i * k + p] * b[p * n + j];
    }
  }
}

#if defined(__x86_64__)
// add_all() in registers of eight; AVX2 without fused operations gives the same bits.
[[gnu::target("avx2")]] void add_all_avx2(const float* a, const float* b, std::size_t m,
                                          std::size_t k, std::size_t n, float* sums) {
  add_all(a, b, m, k, n, sums);
}
#endif

}  // namespace

void add_products(const float* a, const float* b, std::size_t m, std::size_t k, std::size_t n,
                  float* sums) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) {
    add_all_avx2(a, b, m, k, n, sums);
    return;
  }
#endif
  add_all(a, b, m, k, n, sums);
}

}  // namespace attnscope::cuda::emulation
