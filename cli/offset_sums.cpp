#include "cli/offset_sums.h"

#include <algorithm>

#include "core/checked_math.h"
#include "core/error.h"

namespace attnscope {
namespace {

constexpr int64_t kChunkRows = 256;
constexpr int64_t kChunkCols = 512;
/// 2⁴⁰ units are 1; a sum over 2²² rows of weights up to 1 stays below 2⁶³.
constexpr double kUnits = 0x1p40;

int64_t kernel_size(const TokenGrid& grid) {
  const auto plane = checked_mul(2 * grid.height() - 1, 2 * grid.width() - 1);
  const auto size = plane ? checked_mul(*plane, 2 * grid.frames() - 1) : std::nullopt;
  if (!size) throw Error(ErrorCode::resource, "the offsets of the grid are too many to be held");
  return *size;
}

}  // namespace

OffsetSums::OffsetSums(std::span<const HeadTask> tasks, int workers, MemoryBudget& budget) {
  int64_t results = 0;
  int64_t most = 0;
  for (const HeadTask& task : tasks) {
    const int64_t size = kernel_size(task.problem->key_tokens());
    most = std::max(most, size);
    // The counts, and the floats that are made of them.
    const auto bytes = checked_mul(size, static_cast<int64_t>(sizeof(int64_t) + sizeof(float)));
    const auto sum = bytes ? checked_add(results, *bytes) : std::nullopt;
    if (!sum) throw Error(ErrorCode::resource, "the offset kernels are too large to be held");
    results = *sum;
  }
  const auto scratch = checked_mul(most * static_cast<int64_t>(sizeof(int64_t)), workers);
  const auto total = scratch ? checked_add(*scratch, results) : std::nullopt;
  if (!total) throw Error(ErrorCode::resource, "the offset kernels are too large to be held");
  reservation_ = budget.reserve(*total, "the offset kernels");
}

TileRequest OffsetSums::request() const {
  TileRequest request;
  request.chunk_rows = kChunkRows;
  request.chunk_cols = kChunkCols;
  return request;
}

void OffsetSums::begin(std::span<const HeadTask> tasks, int) {
  sums_.resize(tasks.size());
  for (size_t i = 0; i < tasks.size(); ++i) sums_[i].task = &tasks[i];
}

void OffsetSums::add_tile(const Tile& tile, Counts& counts) {
  const TokenGrid& grid = tile.task->problem->key_tokens();
  const int64_t T = grid.frames(), H = grid.height(), W = grid.width();
  const int64_t first_chunk = tile.cols.begin / kChunkCols;
  for (int64_t row = tile.rows.begin; row < tile.rows.end; ++row) {
    const LatentCoord q{row / (H * W), row / W % H, row % W};
    for (int64_t col = tile.cols.begin; col < tile.cols.end;) {
      const LatentCoord k{col / (H * W), col / W % H, col % W};
      // As far as the key's line and the chunk go.
      const int64_t run = std::min({W - k.x, kChunkCols - col % kChunkCols, tile.cols.end - col});
      const auto* chunk = reinterpret_cast<const float*>(
          tile.chunks[static_cast<size_t>(col / kChunkCols - first_chunk)]);
      if (chunk != nullptr) {
        const float* weights = chunk + (row - tile.rows.begin) * kChunkCols + col % kChunkCols;
        const int64_t line = (k.t - q.t + T - 1) * (2 * H - 1) + k.y - q.y + H - 1;
        int64_t* to = counts.data() + line * (2 * W - 1) + k.x - q.x + W - 1;
        for (int64_t i = 0; i < run; ++i) {
          to[i] += static_cast<int64_t>(static_cast<double>(weights[i]) * kUnits + 0.5);
        }
      }
      col += run;
    }
  }
}

void OffsetSums::consume(const Tile& tile) {
  Counts counts;
  {
    const std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      counts = std::move(free_.back());
      free_.pop_back();
    }
  }
  counts.assign(static_cast<size_t>(kernel_size(tile.task->problem->key_tokens())), 0);
  add_tile(tile, counts);
  int64_t live = 0;
  if (tile.first_segment) {
    live = tile.norms.empty() ? tile.rows.size()
                              : std::count_if(tile.norms.begin(), tile.norms.end(),
                                              [](const RowNorm& n) { return n.sum > 0; });
  }
  const std::lock_guard lock(mutex_);
  Sum& sum = sums_[static_cast<size_t>(tile.task_index)];
  if (sum.counts.empty()) sum.counts.assign(counts.size(), 0);
  for (size_t i = 0; i < counts.size(); ++i) sum.counts[i] += counts[i];
  sum.live_rows += live;
  free_.push_back(std::move(counts));
}

OffsetKernel OffsetSums::take(int64_t task) {
  Sum& sum = sums_[static_cast<size_t>(task)];
  const TokenGrid& grid = sum.task->problem->key_tokens();
  OffsetKernel kernel{grid.frames(), grid.height(), grid.width(), {}};
  const double factor = sum.live_rows > 0 ? 1 / (kUnits * static_cast<double>(sum.live_rows)) : 0;
  kernel.mass.reserve(sum.counts.size());
  for (const int64_t count : sum.counts) {
    kernel.mass.push_back(static_cast<float>(static_cast<double>(count) * factor));
  }
  sum.counts = {};
  return kernel;
}

}  // namespace attnscope
