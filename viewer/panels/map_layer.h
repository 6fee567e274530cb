#pragma once

#include <vector>

#include "io/pictures/colour_scale.h"
#include "viewer/gl/map_painter.h"
#include "viewer/panels/label_registry.h"
#include "viewer/panels/theme.h"
#include "viewer/view/view_state.h"

struct ImDrawCmd;
struct ImDrawList;

namespace attnscope {

/// The painter's colours for a view: how the shader is to take texels of the shown product.
gl::MapColours painter_colours(const ViewState& state, const ColourScale& scale, double factor,
                               const Theme& theme);

/// Quads of texels that are drawn at a place of ImGui's draw list, between what was added before
/// and what is added later. One a place; must live until the frame was rendered. What is as it was
/// in the frame before is not coloured anew.
class MapLayer {
 public:
  explicit MapLayer(gl::MapPainter& painter) : painter_(&painter) {}

  std::vector<gl::MapQuad> quads;
  /// Adds the quads, clipped to `clip`, to the current window's draw list.
  void add_tiles(const gl::TexturePool& pool, const gl::MapColours& colours, Colormap map,
                 const ScreenRect& clip);
  void add_grid(const gl::GridTexture& grid, const gl::MapColours& colours, Colormap map,
                const ScreenRect& clip);

 private:
  void add(const ScreenRect& clip);
  static void paint(const ImDrawList* list, const ImDrawCmd* command);
  void paint(const gl::PaintArea& area, std::vector<gl::MapQuad> in_pixels);

  /// All that the picture depends on.
  struct Drawn {
    const void* texels = nullptr;  ///< the pool or the grid
    int64_t uploads = -1;
    std::vector<gl::MapQuad> quads = {};
    gl::MapColours colours = {};
    Colormap map = Colormap::viridis;
    gl::PaintArea area = {};
    friend bool operator==(const Drawn&, const Drawn&) = default;
  };

  gl::MapPainter* painter_;
  const gl::TexturePool* pool_ = nullptr;
  const gl::GridTexture* grid_ = nullptr;
  gl::MapColours colours_;
  Colormap map_ = Colormap::viridis;
  Drawn drawn_;           ///< in the frame before
  gl::KeptDrawing kept_;  ///< of it
};

}  // namespace attnscope
