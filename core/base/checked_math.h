#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace attnscope {

/// a·b of two sizes, or nothing where the product does not fit int64_t or a factor is negative.
inline std::optional<int64_t> checked_mul(int64_t a, int64_t b) {
  int64_t product = 0;
  if (a < 0 || b < 0 || __builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

/// a+b of two sizes, or nothing where the sum does not fit int64_t or a term is negative.
inline std::optional<int64_t> checked_add(int64_t a, int64_t b) {
  int64_t sum = 0;
  if (a < 0 || b < 0 || __builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

/// The number of elements of a shape (1 for rank 0), or nothing on overflow or a negative extent.
inline std::optional<int64_t> checked_count(std::span<const int64_t> shape) {
  // A zero extent makes the array empty, but the others must still be sane on their own.
  int64_t count = 1;
  for (int64_t extent : shape) {
    auto next = checked_mul(count, extent);
    if (!next) return std::nullopt;
    count = *next;
  }
  return count;
}

constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
constexpr int64_t round_up(int64_t a, int64_t multiple) { return ceil_div(a, multiple) * multiple; }

}  // namespace attnscope
