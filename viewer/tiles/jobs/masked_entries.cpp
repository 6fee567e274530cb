#include "viewer/tiles/jobs/masked_entries.h"

#include <algorithm>
#include <numeric>

#include "core/mask/masked_bias.h"

namespace attnscope {
namespace {

/// So many entries are looked at one by one; more are divided.
constexpr int64_t kSmallRect = 4096;

std::vector<int64_t> indices(IndexRange range) {
  std::vector<int64_t> all(static_cast<size_t>(range.size()));
  std::iota(all.begin(), all.end(), range.begin);
  return all;
}

}  // namespace

bool MaskedEntries::all(IndexRange queries, IndexRange keys) const {
  const Mask& mask = problem_->mask();
  switch (mask.classify(head_.batch, head_.head, queries, keys)) {
    case TileClass::empty:
      return true;
    case TileClass::full:
      return false;
    case TileClass::mixed:
      break;
  }
  if (queries.size() * keys.size() <= kSmallRect) {
    std::vector<float> bias(static_cast<size_t>(queries.size() * keys.size()));
    mask.fill_bias(head_.batch, head_.head, indices(queries), keys, bias.data(), keys.size());
    return std::all_of(bias.begin(), bias.end(), [](float b) { return b == kMasked; });
  }
  IndexRange& longer = queries.size() > keys.size() ? queries : keys;
  const IndexRange whole = longer;
  const int64_t middle = whole.begin + whole.size() / 2;
  longer = {whole.begin, middle};
  if (!all(queries, keys)) return false;
  longer = {middle, whole.end};
  return all(queries, keys);
}

bool MaskedEntries::mark(MapTile& tile, const MapGeometry& geometry, IndexRange texel_rows) const {
  if (!any() || tile.id.quantity != Quantity::weights) return false;
  const int level = tile.id.level;
  const auto entries = [level](int64_t first, int64_t count, int64_t extent) {
    return IndexRange{first << level, std::min(extent, (first + count) << level)};
  };
  const int64_t left = tile.id.col * kTileSide;
  const IndexRange keys = entries(left, tile.cols, geometry.cols);
  bool marked = false;
  for (int64_t r = texel_rows.begin; r < texel_rows.end; ++r) {
    const IndexRange queries = entries(tile.id.row * kTileSide + r, 1, geometry.rows);
    const TileClass row = problem_->mask().classify(head_.batch, head_.head, queries, keys);
    if (row == TileClass::full) continue;
    for (int64_t c = 0; c < tile.cols; ++c) {
      const auto at = static_cast<size_t>(r * tile.cols + c);
      if (tile.max[at] != 0) continue;
      if (row != TileClass::empty && !all(queries, entries(left + c, 1, geometry.cols))) continue;
      tile.max[at] = tile.mean[at] = kMasked;
      marked = true;
    }
  }
  return marked;
}

TilePtr MaskedEntries::marked(const TilePtr& tile, const MapGeometry& geometry) const {
  const bool zeros = std::find(tile->max.begin(), tile->max.end(), 0.0f) != tile->max.end();
  if (!any() || !zeros) return tile;
  auto copy = std::make_shared<MapTile>(*tile);
  return mark(*copy, geometry, {0, copy->rows}) ? copy : tile;
}

std::vector<uint8_t> MaskedEntries::keys_masked_in(const std::vector<int64_t>& rows) const {
  std::vector<uint8_t> masked(static_cast<size_t>(problem_->num_keys()), 1);
  std::vector<float> bias(masked.size());
  for (const int64_t row : rows) {
    problem_->mask().fill_bias(head_.batch, head_.head, {&row, 1}, {0, problem_->num_keys()},
                               bias.data(), problem_->num_keys());
    for (size_t k = 0; k < masked.size(); ++k) {
      if (bias[k] != kMasked) masked[k] = 0;
    }
  }
  return masked;
}

std::vector<uint8_t> MaskedEntries::rows_masked_at(IndexRange rows,
                                                   const std::vector<int64_t>& keys) const {
  const std::vector<int64_t> queries = indices(rows);
  std::vector<uint8_t> masked(queries.size(), 1);
  std::vector<float> bias(queries.size());
  for (const int64_t key : keys) {
    problem_->mask().fill_bias(head_.batch, head_.head, queries, {key, key + 1}, bias.data(), 1);
    for (size_t r = 0; r < masked.size(); ++r) {
      if (bias[r] != kMasked) masked[r] = 0;
    }
  }
  return masked;
}

}  // namespace attnscope
