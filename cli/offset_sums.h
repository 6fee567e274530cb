#pragma once

#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "core/memory_budget.h"
#include "core/tile_sink.h"

namespace attnscope {

/// Where a head's attention goes, relative to the query.
struct OffsetKernel {
  int64_t frames = 0, height = 0, width = 0;  ///< the grid's T, H, W
  /// [2T − 1, 2H − 1, 2W − 1]: mean over the video query rows of the weight on the key at
  /// (t, y, x) + (i − T + 1, j − H + 1, k − W + 1). Sums to the mass on video keys.
  std::vector<float> mass;
};

/// A TileSink that adds up weights by the offset from query to key. Weights are counted in units
/// of 2⁻⁴⁰, in integers, so that the result depends neither on memory nor on threads. Queries and
/// keys of every task must be the same grid; rows and keys its video range.
class OffsetSums : public TileSink {
 public:
  OffsetSums(std::span<const HeadTask> tasks, int workers, MemoryBudget& budget);

  TileRequest request() const override;
  void begin(std::span<const HeadTask> tasks, int workers) override;
  void consume(const Tile& tile) override;
  void end() override {}

  /// Rows that are fully masked count in no mean; zeros where all are.
  OffsetKernel take(int64_t task);

 private:
  using Counts = std::vector<int64_t>;
  static void add_tile(const Tile& tile, Counts& counts);

  MemoryReservation reservation_;
  std::mutex mutex_;
  std::vector<Counts> free_;
  struct Sum {
    const HeadTask* task = nullptr;
    Counts counts;
    int64_t live_rows = 0;
  };
  std::vector<Sum> sums_;
};

}  // namespace attnscope
