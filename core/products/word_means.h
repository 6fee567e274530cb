#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/index_range.h"
#include "core/base/memory_budget.h"
#include "core/stream/tile_sink.h"

namespace attnscope {

/// A TileSink that adds up, over the heads of several streams, how much each row gives to each
/// word: to all tokens of it together. Every task has all its text as keys, and as many rows as
/// the others.
class WordMeans : public TileSink {
 public:
  /// `words`: which of a task's keys, counted from its first, are of each; borrowed. Reserves
  /// 4 bytes a row and word.
  WordMeans(std::span<const IndexRange> words, int64_t rows, int64_t keys, MemoryBudget& budget);

  TileRequest request() const override;
  void begin(std::span<const HeadTask>, int) override {}
  void consume(const Tile& tile) override;
  void end() override {}

  /// The mean over the heads that do not mask the row, [rows]; NaN where all do.
  std::vector<float> mean(size_t word) const;

 private:
  const std::span<const IndexRange> words_;
  const int64_t rows_, keys_;
  MemoryReservation reservation_;
  std::vector<float> sums_;    ///< [word, row]
  std::vector<int32_t> live_;  ///< [row]: heads that do not mask it
};

}  // namespace attnscope
