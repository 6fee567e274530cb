#pragma once

#include <memory>
#include <vector>

#include "viewer/gl/grid_texture.h"
#include "viewer/panels/map_layer.h"
#include "viewer/panels/widgets.h"
#include "viewer/view/maps/token_groups.h"

namespace attnscope {

/// The mass between frames (text and other segments too) as a small matrix: queries' frames down,
/// keys' frames to the right. A click shows that part of the map.
class FramesPanel {
 public:
  explicit FramesPanel(gl::MapPainter& painter) : layer_(painter) {}

  void draw(const Ui& ui, const ScreenRect& rect, const Scene& scene, PanelRequests& requests);

 private:
  void take(const Scene& scene);
  double mass(size_t row, size_t col) const;
  ColourScale scale_of(const Scene& scene) const;
  void draw_cells(const Ui& ui, const ScreenRect& area, const Scene& scene,
                  const ColourScale& scale);
  bool has_numbers(const Ui& ui, const ScreenRect& cells, const Scene& scene) const;
  void draw_numbers(const Ui& ui, const ScreenRect& cells, const ColourScale& scale) const;
  void draw_names(const Ui& ui, const ScreenRect& cells) const;
  void take_mouse(const Ui& ui, const ScreenRect& cells, const Scene& scene,
                  PanelRequests& requests) const;
  ScreenRect cell_rect(const ScreenRect& cells, size_t row, size_t col) const;

  MapLayer layer_;
  gl::GridTexture texture_;
  std::shared_ptr<const HeadTracks> of_;    ///< that the cells are of
  std::vector<TokenGroup> queries_, keys_;  ///< rows and columns of cells
  ValueRange range_;                        ///< of the masses above 0
  bool empty_ = true;                       ///< there are none
};

}  // namespace attnscope
