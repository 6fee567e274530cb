#pragma once

#include <cstddef>

namespace attnscope::cuda::emulation {

/// sums[i, j] += Σ a[i, p]·b[p, j] over p: a is [m, k], b [k, n] and sums [m, n], by rows. Each sum
/// is taken in float, in the order of p, without fused operations: the same bits on every
/// processor. No sanitizer watches this (it would take ten times as long): the caller's operands
/// have been read where it does. Thread-safe.
void add_products(const float* a, const float* b, std::size_t m, std::size_t k, std::size_t n,
                  float* sums);

}  // namespace attnscope::cuda::emulation
