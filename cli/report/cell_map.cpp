#include "cli/report/cell_map.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/base/mass_range.h"

namespace attnscope {
namespace {

int64_t side_of_cell(int64_t tokens, int64_t most) {
  int64_t side = 1;
  while ((tokens + side - 1) / side > most) side *= 2;
  return side;
}

}  // namespace

CellMap CellMap::of(int64_t queries, int64_t keys, int64_t most) {
  CellMap map{queries, keys, side_of_cell(queries, most), side_of_cell(keys, most), {}};
  map.values.resize(static_cast<size_t>(map.rows() * map.cols()));
  return map;
}

int64_t CellMap::bytes(int64_t queries, int64_t keys, int64_t most) {
  return std::min(queries, most) * std::min(keys, most) * static_cast<int64_t>(sizeof(float));
}

void CellMap::add_blocks(int64_t row, std::span<const float> max) {
  float* const line = values.data() + row / height * cols();
  const int64_t side = block();
  for (size_t i = 0; i < max.size(); ++i) {
    float& cell = line[static_cast<int64_t>(i) * side / width];
    cell = std::max(cell, max[i]);
  }
}

void CellMap::add_row(int64_t row, std::span<const float> weights) {
  float* const line = values.data() + row / height * cols();
  for (int64_t c = 0; c < cols(); ++c) {
    const int64_t end = std::min(keys, (c + 1) * width);
    for (int64_t key = c * width; key < end; ++key) {
      line[c] = std::max(line[c], weights[static_cast<size_t>(key)]);
    }
  }
}

CodedMap coded_map(std::span<const float> weights) {
  CodedMap map;
  std::vector<ValueMass> cells;
  for (const float w : weights) {
    if (w > 0) cells.push_back({double{w}, double{w}});
  }
  if (!cells.empty()) {
    std::sort(cells.begin(), cells.end(),
              [](const ValueMass& a, const ValueMass& b) { return a.value < b.value; });
    const MassEnds ends = mass_ends(cells);
    map.high = std::log2(ends.high);
    map.low = std::min(std::log2(ends.low), map.high - 1);
  }
  map.codes.reserve(weights.size());
  for (const float w : weights) {
    if (!(w > 0)) {
      map.codes.push_back(std::byte{0});
      continue;
    }
    const double place = (std::log2(static_cast<double>(w)) - map.low) / (map.high - map.low);
    map.codes.push_back(static_cast<std::byte>(
        1 + static_cast<int>(std::lround(254 * std::clamp(place, 0.0, 1.0)))));
  }
  return map;
}

void CellSink::block_row(int64_t job, int64_t row, std::span<const float> max,
                         std::span<const double>) {
  CellMap& map = maps_[static_cast<size_t>(job)];
  const std::lock_guard lock(mutex_);
  map.add_blocks(row * map.block(), max);
}

TileRequest RowCellSink::request() const {
  TileRequest request;
  request.norms = false;
  request.chunk_rows = 64;
  request.chunk_cols = 1;
  for (const CellMap& map : maps_) request.chunk_cols = std::max(request.chunk_cols, map.keys);
  return request;
}

void RowCellSink::consume(const Tile& tile) {
  if (tile.chunks.front() == nullptr) return;
  CellMap& map = maps_[static_cast<size_t>(tile.task_index)];
  const auto* row = reinterpret_cast<const float*>(tile.chunks.front());
  const int64_t stride = request().chunk_cols;
  const std::lock_guard lock(mutex_);
  for (int64_t r = tile.rows.begin; r < tile.rows.end; ++r, row += stride) {
    map.add_row(tile.task->row_at(r), {row, static_cast<size_t>(map.keys)});
  }
}

}  // namespace attnscope
