#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace attnscope {

/// Sums of a row's largest weights, by a histogram of their upper bits and a selection within one
/// bin: no sorting. Not thread-safe; make one a thread (about 260 KiB).
class TopMass {
 public:
  static constexpr int64_t kBytes = 16300 * 16;

  TopMass();
  /// Looks at a row of weights in [0, 1] (sums that rounding lifts a little above count as 1).
  /// Borrowed until the next call.
  void set_row(std::span<const float> row);
  /// The sum of the `count` largest weights of the row, 0 ≤ count ≤ its length; double, in an order
  /// that depends on the row alone.
  double largest(int64_t count);

 private:
  struct Bin {
    int64_t count = 0;
    double sum = 0;
  };
  std::span<const float> row_;
  std::vector<Bin> bins_;
  std::vector<float> selected_;
};

}  // namespace attnscope
