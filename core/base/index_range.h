#pragma once

#include <algorithm>
#include <cstdint>

namespace attnscope {

/// A half-open range of indices [begin, end).
struct IndexRange {
  int64_t begin = 0;
  int64_t end = 0;

  constexpr int64_t size() const { return end - begin; }
  constexpr bool empty() const { return end <= begin; }
  constexpr bool contains(int64_t i) const { return i >= begin && i < end; }
  friend constexpr bool operator==(const IndexRange&, const IndexRange&) = default;
};

/// The indices in both ranges; empty (begin == end) where they do not meet.
constexpr IndexRange intersect(IndexRange a, IndexRange b) {
  const int64_t begin = std::max(a.begin, b.begin);
  return {begin, std::max(begin, std::min(a.end, b.end))};
}

}  // namespace attnscope
