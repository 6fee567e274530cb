#pragma once

#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "core/memory_budget.h"
#include "core/tile_sink.h"

namespace attnscope {

/// How a head's map is cut into cells: cell (i, j) has rows row_edges[i] … row_edges[i + 1] − 1 and
/// keys likewise, counted from the task's first row and key. Ascending from 0 to their number.
struct CellEdges {
  std::vector<int64_t> rows, keys;

  int64_t cell_rows() const { return static_cast<int64_t>(rows.size()) - 1; }
  int64_t cell_cols() const { return static_cast<int64_t>(keys.size()) - 1; }
};

/// What is known of one head's cells.
struct CellTotals {
  std::vector<double> sum;         ///< [cell rows, cell cols] Σ of the weights
  std::vector<float> max;          ///< the same, their largest
  std::vector<int64_t> live_rows;  ///< [cell rows]: rows that are not fully masked
};

/// A TileSink that sums weights over cells and takes their maxima. Sums are taken in double over
/// fixed pieces (at most kPieceRows × kPieceCols, within a cell), in an order of their own, and the
/// pieces of a cell are added in index order: the result depends neither on memory nor on threads.
class CellSums : public TileSink {
 public:
  static constexpr int64_t kPieceRows = 256;
  static constexpr int64_t kPieceCols = 512;

  /// One `edges` a task, borrowed. Reserves the results, `bytes_per_cell` more for what the caller
  /// makes of each, and the sums under way in at most `workers` threads.
  CellSums(std::span<const HeadTask> tasks, std::vector<const CellEdges*> edges, int workers,
           int64_t bytes_per_cell, MemoryBudget& budget);

  TileRequest request() const override;
  void begin(std::span<const HeadTask> tasks, int workers) override;
  void consume(const Tile& tile) override;
  void end() override {}

  /// It can be taken once.
  CellTotals take(int64_t task) { return std::move(totals_[static_cast<size_t>(task)]); }

 private:
  /// One axis cut at cells' edges and at multiples of a piece's length.
  struct Pieces {
    std::vector<int64_t> edges;
    std::vector<int64_t> cell;  ///< the cell of each piece
    size_t count() const { return cell.size(); }
    /// The first piece at or behind a place that is an edge.
    size_t at(int64_t place) const;
  };
  static Pieces cut(const std::vector<int64_t>& edges, int64_t length);
  struct Pending {
    Pieces rows, cols;
    std::vector<double> sum;  ///< [row pieces, column pieces]
    std::vector<float> max;
    std::vector<int64_t> live_rows;  ///< [row pieces]
    int64_t missing = 0;             ///< entries
  };
  Pending& pending_of(const Tile& tile);
  static void add_tile(const Tile& tile, Pending& pending);
  void finish(size_t task);

  std::vector<const CellEdges*> edges_;
  MemoryReservation reservation_;
  std::mutex mutex_;
  std::vector<Pending> pending_;
  std::vector<CellTotals> totals_;
};

}  // namespace attnscope
