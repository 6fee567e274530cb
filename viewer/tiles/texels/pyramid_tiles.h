#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "viewer/tiles/texels/texel_row.h"
#include "viewer/view/maps/map_tile.h"

namespace attnscope {

using TilePtr = std::shared_ptr<const MapTile>;

/// Rows of texels of the base level, in any order, become the exact tiles of all levels from there
/// to the top. Sums of two numbers at a time do not depend on their order, so neither do the tiles.
/// Thread-safe.
class PyramidTiles {
 public:
  PyramidTiles(const HeadId& head, Quantity quantity, const MapGeometry& geometry,
               const std::optional<Against>& against = {});

  /// Bytes of all tiles, and of rows that wait for their partner.
  static int64_t bytes(const MapGeometry& geometry);
  static int64_t tiles(const MapGeometry& geometry);

  /// A row of the base level, once each. Returns the tiles that it completed, which are not touched
  /// any more.
  std::vector<TilePtr> add(int64_t row, const TexelRow& texels);

 private:
  struct TileRow {
    std::vector<std::shared_ptr<MapTile>> tiles;
    int64_t missing = 0;  ///< rows of texels
  };
  void take(int level, int64_t row, const TexelRow& texels, std::vector<TilePtr>& completed);
  TileRow& tile_row(int level, int64_t row);

  const HeadId head_;
  const Quantity quantity_;
  const MapGeometry geometry_;
  const std::optional<Against> against_;
  std::mutex mutex_;
  std::map<std::pair<int, int64_t>, TileRow> open_;
  std::map<std::pair<int, int64_t>, TexelRow> waiting_;
};

/// An empty tile of the right size; exact, with all rows of a texel.
std::shared_ptr<MapTile> make_tile(const TileId& id, const MapGeometry& geometry);
/// Bytes that a tile's numbers take.
int64_t tile_bytes(const TileId& id, const MapGeometry& geometry);
/// Stores row `row` (counted within the tile) of texels that stand for `height` rows of the map;
/// texels[first] is the tile's first column.
void store_texels(MapTile& tile, const MapGeometry& geometry, int64_t row, int64_t height,
                  const TexelRow& texels, int64_t first);

}  // namespace attnscope
