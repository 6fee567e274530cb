#include "viewer/tiles/texels/pyramid_tiles.h"

#include <algorithm>

namespace attnscope {

int64_t tile_bytes(const TileId& id, const MapGeometry& geometry) {
  const int64_t rows = std::min(kTileSide, geometry.texel_rows(id.level) - id.row * kTileSide);
  const int64_t cols = std::min(kTileSide, geometry.texel_cols(id.level) - id.col * kTileSide);
  return rows * cols * 8 + static_cast<int64_t>(sizeof(MapTile));
}

std::shared_ptr<MapTile> make_tile(const TileId& id, const MapGeometry& geometry) {
  auto tile = std::make_shared<MapTile>();
  tile->id = id;
  tile->rows = std::min(kTileSide, geometry.texel_rows(id.level) - id.row * kTileSide);
  tile->cols = std::min(kTileSide, geometry.texel_cols(id.level) - id.col * kTileSide);
  tile->rows_per_texel = std::min(int64_t{1} << id.level, geometry.rows);
  tile->exact = true;
  tile->max.resize(static_cast<size_t>(tile->rows * tile->cols));
  tile->mean.resize(tile->max.size());
  return tile;
}

void store_texels(MapTile& tile, const MapGeometry& geometry, int64_t row, int64_t height,
                  const TexelRow& texels, int64_t first) {
  const int64_t side = int64_t{1} << tile.id.level;
  const int64_t origin = tile.id.col * kTileSide;
  for (int64_t c = 0; c < tile.cols; ++c) {
    const int64_t width = std::min(side, geometry.cols - (origin + c) * side);
    const auto at = static_cast<size_t>(row * tile.cols + c);
    tile.max[at] = texels.max[static_cast<size_t>(first + c)];
    tile.mean[at] = texels.mean(first + c, height * width);
  }
}

PyramidTiles::PyramidTiles(const HeadId& head, Quantity quantity, const MapGeometry& geometry,
                           const std::optional<Against>& against)
    : head_(head), quantity_(quantity), geometry_(geometry), against_(against) {}

int64_t PyramidTiles::bytes(const MapGeometry& geometry) {
  int64_t bytes = 0;
  for (int level = geometry.base_level; level <= geometry.top_level; ++level) {
    // A few waiting rows a level: as many as there are workers and some.
    bytes += geometry.texel_rows(level) * geometry.texel_cols(level) * 8 +
             8 * geometry.texel_cols(level) * 20;
  }
  return bytes + tiles(geometry) * static_cast<int64_t>(sizeof(MapTile) + 64);
}

int64_t PyramidTiles::tiles(const MapGeometry& geometry) {
  int64_t count = 0;
  for (int level = geometry.base_level; level <= geometry.top_level; ++level) {
    count += geometry.tile_rows(level) * geometry.tile_cols(level);
  }
  return count;
}

PyramidTiles::TileRow& PyramidTiles::tile_row(int level, int64_t row) {
  TileRow& found = open_[{level, row}];
  if (!found.tiles.empty()) return found;
  for (int64_t col = 0; col < geometry_.tile_cols(level); ++col) {
    found.tiles.push_back(make_tile({head_, quantity_, level, row, col, against_}, geometry_));
  }
  found.missing = found.tiles.front()->rows;
  return found;
}

std::vector<TilePtr> PyramidTiles::add(int64_t row, const TexelRow& texels) {
  const std::lock_guard lock(mutex_);
  std::vector<TilePtr> completed;
  take(geometry_.base_level, row, texels, completed);
  return completed;
}

void PyramidTiles::take(int level, int64_t row, const TexelRow& texels,
                        std::vector<TilePtr>& completed) {
  const int64_t side = int64_t{1} << level;
  const int64_t height = std::min(side, geometry_.rows - row * side);
  TileRow& tiles = tile_row(level, row / kTileSide);
  for (size_t col = 0; col < tiles.tiles.size(); ++col) {
    store_texels(*tiles.tiles[col], geometry_, row % kTileSide, height, texels,
                 static_cast<int64_t>(col) * kTileSide);
  }
  if (--tiles.missing == 0) {
    completed.insert(completed.end(), tiles.tiles.begin(), tiles.tiles.end());
    open_.erase({level, row / kTileSide});
  }
  if (level == geometry_.top_level) return;
  TexelRow coarse = texels.halved();
  const bool alone = row % 2 == 0 && row + 1 == geometry_.texel_rows(level);
  if (!alone) {
    const auto partner = waiting_.find({level + 1, row / 2});
    if (partner == waiting_.end()) {
      waiting_.emplace(std::pair(level + 1, row / 2), std::move(coarse));
      return;
    }
    coarse.add(partner->second);
    waiting_.erase(partner);
  }
  take(level + 1, row / 2, coarse, completed);
}

}  // namespace attnscope
