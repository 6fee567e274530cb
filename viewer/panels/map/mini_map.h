#pragma once

#include <memory>

#include "viewer/panels/map/view_transform.h"
#include "viewer/panels/map_layer.h"
#include "viewer/panels/widgets.h"
#include "viewer/textures/tile_textures.h"

namespace attnscope {

/// The whole map in small, in colours of its own range, with the part that is seen, which can be
/// dragged. Under a split line it has both sides, as the map does.
class MiniMap {
 public:
  MiniMap(gl::MapPainter& painter, TileTextures& textures)
      : textures_(&textures), own_(painter), other_(painter) {}

  /// Within the square `area`. True while the part that is seen is dragged.
  bool draw(const Ui& ui, const ScreenRect& area, const Scene& scene, PanelRequests& requests);

 private:
  struct Side {
    explicit Side(gl::MapPainter& painter) : layer(painter) {}
    MapLayer layer;
    std::shared_ptr<const MapTile> tile;  ///< that `counts` was counted of
    Pool pool = Pool::max;
    ValueHistogram counts;
  };
  /// The colours of the whole map, whatever part of it is seen.
  static ColourScale scale_of(const ViewState& shown, const MapGeometry& geometry,
                              const std::shared_ptr<const MapTile>& tile, Side& side);
  void draw_side(const Ui& ui, const Scene& scene, const ViewState& shown, const ScreenRect& whole,
                 const ScreenRect& clip, Side& side);

  TileTextures* textures_;
  Side own_, other_;
};

}  // namespace attnscope
