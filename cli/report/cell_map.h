#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "core/reduce/reduction_stream.h"
#include "core/stream/tile_sink.h"

namespace attnscope {

/// A map in a few cells: cell (r, c) covers the entries from row r·height and key c·width on.
struct CellMap {
  int64_t queries = 0, keys = 0;  ///< of the map
  int64_t height = 1, width = 1;  ///< of a cell, in entries; powers of two
  /// [rows(), cols()]: the largest weight of a cell over the rows that were computed.
  std::vector<float> values;

  /// The finest with at most `most` cells on each side; all cells 0.
  static CellMap of(int64_t queries, int64_t keys, int64_t most);
  static int64_t bytes(int64_t queries, int64_t keys, int64_t most);
  int64_t rows() const { return (queries + height - 1) / height; }
  int64_t cols() const { return (keys + width - 1) / width; }
  /// Side of the square blocks that the cells are made of.
  int64_t block() const { return height < width ? height : width; }

  /// Blocks of block() entries along a side that begin at row `row` of the map.
  void add_blocks(int64_t row, std::span<const float> max);
  /// Row `row` of the map, [keys].
  void add_row(int64_t row, std::span<const float> weights);
};

/// A CellMap as a page carries it.
struct CodedMap {
  /// [cells]: 0 of a weight of 0, else 1 + 254·(log₂ w − low)/(high − low), from 1 to 255.
  std::vector<std::byte> codes;
  double low = -1, high = 0;  ///< log₂ of the weights at which colours begin and end
};
/// `low` and `high` are mass_ends() of the weights (core/base/mass_range.h), an octave at least.
CodedMap coded_map(std::span<const float> weights);

/// Draws maps of jobs from the blocks of their reduction; jobs ask for CellMap::block().
class CellSink : public ReductionSink {
 public:
  /// Borrows the maps, one a job.
  explicit CellSink(std::span<CellMap> maps) : maps_(maps) {}
  void block_row(int64_t job, int64_t row, std::span<const float> max,
                 std::span<const double> sum) override;
  void head(int64_t, const HeadTotals&) override {}

 private:
  const std::span<CellMap> maps_;
  std::mutex mutex_;
};

/// Draws maps of tasks from their rows.
class RowCellSink : public TileSink {
 public:
  /// Borrows the maps, one a task.
  explicit RowCellSink(std::span<CellMap> maps) : maps_(maps) {}
  TileRequest request() const override;
  void begin(std::span<const HeadTask>, int) override {}
  void consume(const Tile& tile) override;
  void end() override {}

 private:
  const std::span<CellMap> maps_;
  std::mutex mutex_;
};

}  // namespace attnscope
