#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/memory_budget.h"
#include "core/stream/tile_sink.h"

namespace attnscope {

/// A TileSink that keeps single columns of the tasks' maps: how much each row gives to each of the
/// chosen keys. Every task has all its text as keys; rows are a range.
class TextColumns : public TileSink {
 public:
  /// `chosen`: which of each task's keys are kept, counted from its first; borrowed. With
  /// `within_text` every row is divided by its mass on the task's keys.
  TextColumns(std::span<const HeadTask> tasks, std::span<const std::vector<int64_t>> chosen,
              bool within_text, MemoryBudget& budget);

  TileRequest request() const override;
  void begin(std::span<const HeadTask> tasks, int workers) override;
  void consume(const Tile& tile) override;
  void end() override {}

  /// [rows] of the n-th chosen key. It can be taken once.
  std::vector<float> take(int64_t task, size_t n) {
    return std::move(columns_[static_cast<size_t>(task)][n]);
  }

 private:
  std::span<const std::vector<int64_t>> chosen_;
  bool within_text_;
  int64_t most_keys_ = 0;
  MemoryReservation reservation_;
  std::vector<std::vector<std::vector<float>>> columns_;  ///< [task][chosen][row]
};

}  // namespace attnscope
