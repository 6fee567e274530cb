#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <vector>

namespace attnscope {

/// Rows of blocks in any order become the rows of all coarser levels, each block of which covers
/// two by two of the level below; the last level has one block on its shorter side. Holds only rows
/// whose partner has not come yet. Sums of two numbers at a time do not depend on their order, so
/// neither do the results. Thread-safe.
class PyramidRows {
 public:
  /// `max` and `mean` of the blocks of a row of a level; a mean is over the entries that exist.
  using Emit = std::function<void(int64_t level, int64_t row, std::span<const float> max,
                                  std::span<const float> mean)>;

  /// `rows` × `cols` entries in blocks of `block`; `all_levels` false: the first level alone. Emit
  /// is called by one thread at a time.
  PyramidRows(int64_t rows, int64_t cols, int64_t block, bool all_levels, Emit emit);

  /// How many levels there are.
  static int64_t levels(int64_t rows, int64_t cols, int64_t block);

  /// A row of the first level, with the sums of its blocks' weights.
  void add(int64_t row, std::span<const float> max, std::span<const double> sum);

 private:
  struct Row {
    std::vector<float> max;
    std::vector<double> sum;
  };
  void take(int64_t level, int64_t row, const Row& blocks);

  const int64_t rows_, cols_, block_, levels_;
  const Emit emit_;
  std::mutex mutex_;
  std::map<std::pair<int64_t, int64_t>, Row> waiting_;
};

}  // namespace attnscope
