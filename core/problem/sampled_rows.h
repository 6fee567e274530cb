#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace attnscope {

/// Wherever some of n rows stand for all: `count` evenly spread ones, ⌊(i + ½)·n/count⌋, ascending;
/// all rows where there are no more than `count`.
inline std::vector<int64_t> sampled_rows(int64_t n, int64_t count) {
  std::vector<int64_t> rows(static_cast<size_t>(n < count ? n : count));
  if (n <= count) {
    std::iota(rows.begin(), rows.end(), int64_t{0});
    return rows;
  }
  for (int64_t i = 0; i < count; ++i) {
    rows[static_cast<size_t>(i)] = (2 * i + 1) * n / (2 * count);
  }
  return rows;
}

}  // namespace attnscope
