#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace attnscope {

/// How often which values occur, in bins [i·w, (i + 1)·w) from that of the least value to that of
/// the greatest. The width w is the smallest power of two from 2^kLeastExponent on that leaves at
/// most kMostBins of them, so that values may come in any order and in parts. A value.
class ValueCounts {
 public:
  static constexpr int64_t kMostBins = 256;
  static constexpr int kLeastExponent = -10;

  /// Values below `least`, which is finite, are counted by themselves: −inf, which is what masked
  /// logits are, always. Throws Error(value) at NaN and +inf, which have no bin; then nothing is
  /// counted.
  void add(std::span<const float> values, float least = std::numeric_limits<float>::lowest());
  void add(const ValueCounts& other);
  /// Makes the bins 2^exponent wide where they are narrower.
  void widen(int exponent);

  int exponent() const { return exponent_; }
  double width() const;
  /// Where bin i of counts() begins; i = counts().size(): where the last one ends.
  double edge(size_t i) const;
  const std::vector<int64_t>& counts() const { return counts_; }
  int64_t total() const { return total_; }  ///< of counts()
  int64_t masked() const { return masked_; }

 private:
  void reach(double low, double high);

  int exponent_ = kLeastExponent;
  int64_t first_ = 0;  ///< the first bin's i
  std::vector<int64_t> counts_;
  int64_t total_ = 0, masked_ = 0;
};

}  // namespace attnscope
