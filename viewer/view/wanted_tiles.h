#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "viewer/view/maps/tile_source.h"
#include "viewer/view/view_state.h"

namespace attnscope {

/// Pixels of the area that ViewState::rect fills from edge to edge.
struct PaneSize {
  double width = 0;   ///< across the keys
  double height = 0;  ///< across the queries
};

/// Tiles of one level that a view may take before a coarser one is chosen.
inline constexpr int64_t kMaxViewTiles = 1024;

/// A tile of what the state shows of the map: of its head's numbers, or of their difference from
/// side B's.
TileId tile_of(const ViewState& state, int level, int64_t row, int64_t col);

/// Which numbers of the map a product is made of.
Quantity product_quantity(ViewProduct product);

/// The finest level whose texels take at least half a pixel on the axis on which they are larger
/// (half to one while there are finer levels), coarser where more than kMaxViewTiles tiles would be
/// seen. 0 … geometry.top_level.
int view_level(const MapRect& rect, const MapGeometry& geometry, PaneSize pane);

/// The tiles of a level that a view shows some of, nearest to its middle first (ties: by row, then
/// by column).
std::vector<TileId> seen_tiles(const ViewState& state, const MapGeometry& geometry, int level);

/// All that a view would like to have: what covers it on every level that is kept whole, from the
/// coarsest to its own, coarser first; then, of a finer one, its own alone: a tile between would
/// need the sums of many more rows than are seen. Nothing for a pane without pixels.
std::vector<TileId> wanted_tiles(const ViewState& state, const MapGeometry& geometry,
                                 PaneSize pane);

/// The line that the query volume shows: of the picked query, else of the token under the mouse.
std::optional<LineRequest> wanted_line(const ViewState& state,
                                       const std::optional<int64_t>& hovered);

/// A piece of the picture: the entries `place` of the map are drawn from texels
/// [row0, row1) × [col0, col1) of `source`, counted from the tile's own corner, not rounded.
struct DrawnTile {
  TileId wanted;
  TileId source;
  MapRect place;  ///< within the map
  double row0 = 0, row1 = 0, col0 = 0, col1 = 0;
};
struct DrawPlan {
  int level = 0;
  std::vector<DrawnTile> tiles;  ///< do not overlap
  int64_t stand_ins = 0;         ///< tiles of the level that something else is drawn for
  int64_t missing = 0;           ///< tiles of the level that nothing is there for, in part or whole
};
/// The tiles to draw now: every tile seen on the view's level, or in its place the same part of the
/// nearest coarser tile that `has` knows, or of the finer tiles within it (down to two levels)
/// where no coarser one is there.
DrawPlan plan_drawing(const ViewState& state, const MapGeometry& geometry, PaneSize pane,
                      const std::function<bool(const TileId&)>& has);

}  // namespace attnscope
