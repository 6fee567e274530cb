#include "cli/cell_sums.h"

#include <algorithm>
#include <array>

#include "core/checked_math.h"
#include "core/error.h"

namespace attnscope {
namespace {

/// Adds a run of weights in eight interleaved sums, which the compiler can keep in one register;
/// their order is part of the result.
void add_run(const float* weights, int64_t count, double& sum, float& max) {
  constexpr int64_t kLanes = 8;
  std::array<double, kLanes> sums{};
  std::array<float, kLanes> most{};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      const auto l = static_cast<size_t>(lane);
      const float w = weights[i + lane];
      sums[l] += static_cast<double>(w);
      most[l] = most[l] > w ? most[l] : w;
    }
  }
  for (int64_t lane = 0; i < count; ++i, ++lane) {
    sums[static_cast<size_t>(lane)] += static_cast<double>(weights[i]);
    most[0] = std::max(most[0], weights[i]);
  }
  for (size_t l = 0; l < kLanes; ++l) {
    sum += sums[l];
    max = std::max(max, most[l]);
  }
}

}  // namespace

size_t CellSums::Pieces::at(int64_t place) const {
  return static_cast<size_t>(std::lower_bound(edges.begin(), edges.end(), place) - edges.begin());
}

CellSums::Pieces CellSums::cut(const std::vector<int64_t>& edges, int64_t length) {
  Pieces pieces;
  for (size_t i = 0; i + 1 < edges.size(); ++i) {
    for (int64_t begin = edges[i]; begin < edges[i + 1];) {
      pieces.edges.push_back(begin);
      pieces.cell.push_back(static_cast<int64_t>(i));
      begin = std::min(edges[i + 1], (begin / length + 1) * length);
    }
  }
  pieces.edges.push_back(edges.back());
  return pieces;
}

CellSums::CellSums(std::span<const HeadTask> tasks, std::vector<const CellEdges*> edges,
                   int workers, int64_t bytes_per_cell, MemoryBudget& budget)
    : edges_(std::move(edges)) {
  constexpr int64_t kBytes = sizeof(double) + sizeof(float);
  int64_t results = 0;
  int64_t most_pieces = 0;
  const auto too_large = [] {
    return Error(ErrorCode::resource, "the cells of the maps are too large to be held");
  };
  for (size_t i = 0; i < tasks.size(); ++i) {
    const CellEdges& e = *edges_[i];
    const int64_t row_pieces = e.cell_rows() + ceil_div(e.rows.back(), kPieceRows);
    const int64_t col_pieces = e.cell_cols() + ceil_div(e.keys.back(), kPieceCols);
    const auto pieces = checked_mul(row_pieces, col_pieces);
    const auto piece_bytes = pieces ? checked_mul(*pieces, kBytes) : std::nullopt;
    const auto cells = checked_mul(e.cell_rows(), e.cell_cols());
    const auto bytes = cells ? checked_mul(*cells, kBytes + bytes_per_cell) : std::nullopt;
    const auto sum = bytes ? checked_add(results, *bytes) : std::nullopt;
    if (!sum || !piece_bytes) throw too_large();
    results = *sum;
    most_pieces = std::max(most_pieces, *piece_bytes);
  }
  // Every worker can be in another head, and one more can have begun.
  const auto under_way = checked_mul(most_pieces, workers + 1);
  const auto total = under_way ? checked_add(*under_way, results) : std::nullopt;
  if (!total) throw too_large();
  reservation_ = budget.reserve(*total, "the cells of the maps");
}

TileRequest CellSums::request() const {
  TileRequest request;
  request.chunk_rows = kPieceRows;
  request.chunk_cols = kPieceCols;
  return request;
}

void CellSums::begin(std::span<const HeadTask> tasks, int) {
  pending_.resize(tasks.size());
  totals_.resize(tasks.size());
  for (size_t i = 0; i < tasks.size(); ++i) {
    pending_[i].missing = tasks[i].num_rows() * tasks[i].keys.size();
  }
}

CellSums::Pending& CellSums::pending_of(const Tile& tile) {
  const auto task = static_cast<size_t>(tile.task_index);
  const std::lock_guard lock(mutex_);
  Pending& p = pending_[task];
  if (p.sum.empty()) {
    p.rows = cut(edges_[task]->rows, kPieceRows);
    p.cols = cut(edges_[task]->keys, kPieceCols);
    p.sum.assign(p.rows.count() * p.cols.count(), 0.0);
    p.max.assign(p.sum.size(), 0.0f);
    p.live_rows.assign(p.rows.count(), 0);
  }
  return p;
}

void CellSums::add_tile(const Tile& tile, Pending& p) {
  const size_t last_col = p.cols.at(tile.cols.end);
  const int64_t first_chunk = tile.cols.begin / kPieceCols;
  for (size_t i = p.rows.at(tile.rows.begin); p.rows.edges[i] < tile.rows.end; ++i) {
    for (int64_t row = p.rows.edges[i]; row < p.rows.edges[i + 1]; ++row) {
      const int64_t r = row - tile.rows.begin;
      if (tile.first_segment) {
        p.live_rows[i] += tile.norms.empty() || tile.norms[static_cast<size_t>(r)].sum > 0 ? 1 : 0;
      }
      for (size_t j = p.cols.at(tile.cols.begin); j < last_col; ++j) {
        const int64_t col = p.cols.edges[j];
        const auto* chunk = reinterpret_cast<const float*>(
            tile.chunks[static_cast<size_t>(col / kPieceCols - first_chunk)]);
        if (chunk == nullptr) continue;
        const size_t at = i * p.cols.count() + j;
        add_run(chunk + r * kPieceCols + col % kPieceCols, p.cols.edges[j + 1] - col, p.sum[at],
                p.max[at]);
      }
    }
  }
}

void CellSums::consume(const Tile& tile) {
  Pending& pending = pending_of(tile);
  // Other tiles of the task have other pieces.
  add_tile(tile, pending);
  const std::lock_guard lock(mutex_);
  pending.missing -= tile.rows.size() * tile.cols.size();
  if (pending.missing == 0) finish(static_cast<size_t>(tile.task_index));
}

void CellSums::finish(size_t task) {
  Pending& p = pending_[task];
  CellTotals& totals = totals_[task];
  const auto rows = static_cast<size_t>(edges_[task]->cell_rows());
  const auto cols = static_cast<size_t>(edges_[task]->cell_cols());
  totals.sum.assign(rows * cols, 0.0);
  totals.max.assign(rows * cols, 0.0f);
  totals.live_rows.assign(rows, 0);
  for (size_t i = 0; i < p.rows.count(); ++i) {
    const auto row = static_cast<size_t>(p.rows.cell[i]);
    totals.live_rows[row] += p.live_rows[i];
    for (size_t j = 0; j < p.cols.count(); ++j) {
      const size_t cell = row * cols + static_cast<size_t>(p.cols.cell[j]);
      totals.sum[cell] += p.sum[i * p.cols.count() + j];
      totals.max[cell] = std::max(totals.max[cell], p.max[i * p.cols.count() + j]);
    }
  }
  p = {};
}

}  // namespace attnscope
