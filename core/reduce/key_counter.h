#pragma once

#include <array>
#include <cstddef>
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
  /// Number and mass of the keys whose weights agree in exponent and leading bits.
  struct Bucket {
    int64_t count = 0;
    double mass = 0;
  };
  /// All keys of heavier buckets than some.
  using Heavier = Bucket;
  /// The bucket in which a share, as a mass, is reached.
  struct ReachedShare {
    size_t bucket = 0;
    double mass = 0;
    Heavier heavier;
  };
  using Reached = std::array<ReachedShare, kKeyShares.size()>;

  template <typename Real>
  void take_weights(const RowEntries<Real>& row, int64_t keys);
  void fill_buckets();
  Reached reached_buckets() const;
  /// The weights of those buckets, the largest first.
  void sort_reached(const Reached& reached);

  std::vector<float> weights_;       ///< of the row
  std::vector<Bucket> buckets_;      ///< all empty between two rows
  size_t lowest_ = 0, highest_ = 0;  ///< buckets of the row: few, where it is short
  std::vector<float> sorted_;
};

}  // namespace attnscope
