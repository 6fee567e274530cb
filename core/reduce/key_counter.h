#pragma once

#include <cstdint>
#include <vector>

#include "core/reduce/reduction.h"

namespace attnscope {

/// Finds the KeyCounts of rows, one after the other, in memory that it keeps. Not thread-safe.
class KeyCounter {
 public:
  /// Bytes that it keeps for rows of up to `keys` keys.
  static int64_t bytes(int64_t keys);

  /// Of a row of `keys` keys: they are taken by falling weight until they hold the share of the
  /// sum of all. Sums are in double, of weights rounded to float32.
  template <typename Real>
  KeyCounts count(const RowEntries<Real>& row, int64_t keys);

 private:
  /// What the keys whose weights are alike in size have together.
  struct Bucket {
    int64_t count = 0;
    double mass = 0;
  };
  template <typename Real>
  void sort_bucket(const RowEntries<Real>& row, int64_t keys, size_t bucket);

  std::vector<Bucket> buckets_;  ///< all empty between two rows
  std::vector<float> sorted_;    ///< the weights of one bucket
};

}  // namespace attnscope
