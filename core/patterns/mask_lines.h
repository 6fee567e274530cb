#pragma once

#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "core/base/memory_budget.h"
#include "core/mask/mask.h"
#include "core/stream/tile_sink.h"

namespace attnscope {

/// Keeps key j in row i where j is one of `columns` or j − i one of `diagonals`.
Mask line_mask(std::vector<int64_t> columns, std::vector<int64_t> diagonals);

/// A TileSink that sums the weights of the tasks' rows (all of one head) by column and by diagonal
/// j − i, in units of 2⁻⁴⁵, so that the order of rows does not matter.
class LineCollector : public TileSink {
 public:
  /// Reserves 8 bytes a column and a diagonal.
  LineCollector(const AttentionProblem& problem, const TileRequest& request, MemoryBudget& budget);
  /// The bytes that the constructor will reserve.
  static int64_t bytes(const AttentionProblem& problem);

  TileRequest request() const override { return request_; }
  void begin(std::span<const HeadTask>, int) override {}
  void consume(const Tile& tile) override;
  void end() override {}

  /// The `count` columns (diagonals) with the largest sums, ascending; equal ones by the lower
  /// index; never one without mass.
  std::vector<int64_t> top_columns(int64_t count) const;
  std::vector<int64_t> top_diagonals(int64_t count) const;

 private:
  const TileRequest request_;
  const int64_t num_queries_;
  MemoryReservation reservation_;
  std::mutex mutex_;
  std::vector<int64_t> columns_;
  std::vector<int64_t> diagonals_;  ///< of j − i at index j − i + num_queries − 1
};

}  // namespace attnscope
