#include "viewer/view/magnified.h"

#include <algorithm>
#include <memory>

#include "core/base/index_range.h"
#include "viewer/view/wanted_tiles.h"

namespace attnscope {
namespace {

/// The magnified places around one, as far as there are any.
IndexRange around(int64_t place, int64_t count) {
  const int64_t first = place - kMagnified / 2;
  return {std::max<int64_t>(0, first), std::min(count, first + kMagnified)};
}

/// A tile of single entries, or the finest that covers it; null: there is none yet.
std::shared_ptr<const MapTile> finest(const ViewState& state, const MapGeometry& geometry,
                                      const TileSource& tiles, const TileId& id) {
  for (int level = 0; level <= geometry.top_level; ++level) {
    auto tile = find(tiles, tile_of(state, level, id.row >> level, id.col >> level));
    if (tile && !tile->max.empty()) return tile;
  }
  return nullptr;
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
    const auto tile = finest(state, geometry, tiles, id);
    if (!tile) {
      seen.complete = seen.exact = false;
      continue;
    }
    const int level = tile->id.level;
    seen.coarsest = std::max(seen.coarsest, level);
    seen.exact = seen.exact && level == 0 && tile->exact;
    // Of exports whose texels are blocks the two differ.
    const std::vector<float>& values = state.pool == Pool::max ? tile->max : tile->mean;
    const int64_t top = id.row * kTileSide, left = id.col * kTileSide;
    for (int64_t q = std::max(rows.begin, top); q < std::min(rows.end, top + kTileSide); ++q) {
      for (int64_t k = std::max(cols.begin, left); k < std::min(cols.end, left + kTileSide); ++k) {
        const auto cell =
            static_cast<size_t>((q - seen.first_row()) * kMagnified + k - seen.first_col());
        const int64_t texel = ((q >> level) - tile->id.row * kTileSide) * tile->cols +
                              (k >> level) - tile->id.col * kTileSide;
        seen.values[cell] = values[static_cast<size_t>(texel)];
        seen.coarse[cell] = level > 0;
      }
    }
  }
  return seen;
}

}  // namespace attnscope
