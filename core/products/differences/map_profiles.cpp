#include "core/products/differences/map_profiles.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/problem/sampled_rows.h"
#include "core/products/differences/map_difference.h"

namespace attnscope {
namespace {

constexpr int64_t kProfileRows = 64;
constexpr int64_t kTileRows = 16;

int64_t cell_keys(int64_t keys) {
  return (keys + MapProfile::kMostCells - 1) / MapProfile::kMostCells;
}

/// NaN without rows that both have.
double divergence_between(const MapProfile& a, const MapProfile& b) {
  const auto cells = static_cast<size_t>(a.cells);
  double sum = 0;
  int64_t rows = 0;
  for (size_t first = 0; first < a.mass.size(); first += cells) {
    const double row = row_divergence(std::span(a.mass).subspan(first, cells),
                                      std::span(b.mass).subspan(first, cells));
    if (std::isnan(row)) continue;
    sum += row;
    ++rows;
  }
  return rows == 0 ? std::numeric_limits<double>::quiet_NaN() : sum / static_cast<double>(rows);
}

}  // namespace

std::vector<int64_t> profile_rows(int64_t queries) { return sampled_rows(queries, kProfileRows); }

ProfileCollector::ProfileCollector(std::span<const HeadTask> tasks) {
  for (const HeadTask& task : tasks) {
    const int64_t keys = task.problem->num_keys(), width = cell_keys(keys);
    most_keys_ = std::max(most_keys_, keys);
    MapProfile& profile = profiles_.emplace_back();
    profile.cells = (keys + width - 1) / width;
    profile.mass.assign(static_cast<size_t>(task.num_rows() * profile.cells), 0);
  }
}

TileRequest ProfileCollector::request() const {
  TileRequest request;
  request.chunk_rows = kTileRows;
  request.chunk_cols = most_keys_;
  return request;
}

void ProfileCollector::consume(const Tile& tile) {
  const auto* row = reinterpret_cast<const float*>(tile.chunks.front());
  if (row == nullptr) return;
  MapProfile& profile = profiles_[static_cast<size_t>(tile.task_index)];
  const int64_t keys = tile.task->problem->num_keys(), width = cell_keys(keys);
  float* cell = profile.mass.data() + tile.rows.begin * profile.cells;
  for (int64_t r = 0; r < tile.rows.size(); ++r, row += most_keys_) {
    for (int64_t first = 0; first < keys; first += width) {
      double sum = 0;
      for (int64_t key = first; key < std::min(keys, first + width); ++key) {
        sum += static_cast<double>(row[key]);
      }
      *cell++ = static_cast<float>(sum);
    }
  }
}

std::vector<NearMap> nearest_maps(std::span<const MapProfile> maps, size_t of, size_t most) {
  std::vector<NearMap> near;
  for (size_t i = 0; i < maps.size(); ++i) {
    if (i == of) continue;
    const double divergence = divergence_between(maps[of], maps[i]);
    if (!std::isnan(divergence)) near.push_back({i, divergence});
  }
  const auto count = static_cast<int64_t>(std::min(most, near.size()));
  std::partial_sort(
      near.begin(), near.begin() + count, near.end(), [](const NearMap& a, const NearMap& b) {
        return a.divergence != b.divergence ? a.divergence < b.divergence : a.place < b.place;
      });
  near.resize(static_cast<size_t>(count));
  return near;
}

}  // namespace attnscope
