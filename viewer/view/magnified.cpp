#include "viewer/view/magnified.h"

#include <algorithm>

#include "core/base/index_range.h"
#include "viewer/view/wanted_tiles.h"

namespace attnscope {
namespace {

/// The magnified places around one, as far as there are any.
IndexRange around(int64_t place, int64_t count) {
  const int64_t first = place - kMagnified / 2;
  return {std::max<int64_t>(0, first), std::min(count, first + kMagnified)};
}

}  // namespace

std::vector<TileId> magnified_tiles(const ViewState& state, const MapGeometry& geometry,
                                    int64_t row, int64_t col) {
  const IndexRange rows = around(row, geometry.rows), cols = around(col, geometry.cols);
  std::vector<TileId> tiles;
  for (int64_t r = rows.begin / kTileSide; r <= (rows.end - 1) / kTileSide; ++r) {
    for (int64_t c = cols.begin / kTileSide; c <= (cols.end - 1) / kTileSide; ++c) {
      tiles.push_back(tile_of(state, 0, r, c));
    }
  }
  return tiles;
}

Magnified magnified(const ViewState& state, const MapGeometry& geometry, const TileSource& tiles,
                    int64_t row, int64_t col) {
  Magnified seen{.row = row, .col = col, .values = {}, .complete = true, .exact = true};
  const IndexRange rows = around(row, geometry.rows), cols = around(col, geometry.cols);
  for (const TileId& id : magnified_tiles(state, geometry, row, col)) {
    const auto tile = find(tiles, id);
    if (!tile || tile->max.empty()) {
      seen.complete = seen.exact = false;
      continue;
    }
    // Of exports whose texels are blocks the two differ.
    const std::vector<float>& values = state.pool == Pool::max ? tile->max : tile->mean;
    seen.exact = seen.exact && tile->exact;
    const int64_t top = id.row * kTileSide, left = id.col * kTileSide;
    for (int64_t q = std::max(rows.begin, top); q < std::min(rows.end, top + tile->rows); ++q) {
      for (int64_t k = std::max(cols.begin, left); k < std::min(cols.end, left + tile->cols); ++k) {
        const int64_t cell = (q - seen.first_row()) * kMagnified + k - seen.first_col();
        const int64_t texel = (q - top) * tile->cols + k - left;
        seen.values[static_cast<size_t>(cell)] = values[static_cast<size_t>(texel)];
      }
    }
  }
  return seen;
}

}  // namespace attnscope
