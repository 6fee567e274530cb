#pragma once

#include <array>
#include <optional>
#include <vector>

#include "viewer/panels/map_layer.h"
#include "viewer/panels/scene.h"
#include "viewer/textures/sketch_textures.h"

namespace attnscope {

/// Every head of the step: a thumbnail or a number each, layers by heads or sorted. The mouse shows
/// a head in the other panes, a click takes it.
class AtlasPanel {
 public:
  explicit AtlasPanel(gl::MapPainter& painter) : layer_(painter) {}

  void draw(const Ui& ui, const ScreenRect& rect, const Scene& scene, PanelRequests& requests);
  /// The heads whose cells were seen in the last frame, from the top.
  const std::vector<HeadId>& seen() const { return seen_; }
  int64_t texture_bytes() const { return textures_.bytes(); }

 private:
  /// Where the cells stand in the pane.
  struct Layout {
    float cell = 0;    ///< from one cell to the next, in pixels
    float labels = 0;  ///< width of the layers' names
    float heads = 0;   ///< height of the heads' numbers, above the cells
    size_t columns = 0, lines = 0;
  };
  /// A cell that is seen.
  struct Cell {
    const AtlasHead* head = nullptr;
    std::string line;  ///< the label of its line
    std::shared_ptr<const HeadSketch> sketch;
    ScreenRect rect;
  };
  void draw_header(const Ui& ui, const ScreenRect& rect, const Scene& scene,
                   PanelRequests& requests);
  /// Gives the y below them.
  float draw_controls(const Ui& ui, const ScreenRect& rect, const Scene& scene,
                      PanelRequests& requests);
  Layout fit(const Ui& ui, float width, const AtlasCells& atlas) const;
  void draw_cells(const Ui& ui, const ScreenRect& area, const Scene& scene,
                  PanelRequests& requests);
  std::vector<Cell> visible_cells(const Ui& ui, const Layout& layout, const ImVec2& origin,
                                  const ScreenRect& area, const Scene& scene);
  void draw_thumbnails(const Ui& ui, const std::vector<Cell>& cells, const ScreenRect& area,
                       const Scene& scene);
  void draw_numbers(const Ui& ui, const std::vector<Cell>& cells, const Scene& scene) const;
  static void draw_head_numbers(const Ui& ui, const Layout& layout, const ScreenRect& area, float x,
                                const AtlasCells& atlas);
  static void draw_marks(const Ui& ui, const std::vector<Cell>& cells, const Scene& scene);
  void point_at(const Ui& ui, const std::vector<Cell>& cells, bool clicked, const Scene& scene,
                PanelRequests& requests);
  bool is_scrolling(const Scene& scene, PanelRequests& requests);
  void fit_colours(const Scene& scene);
  void draw_legend_of(const Ui& ui, const ScreenRect& rect, const Scene& scene) const;

  SketchTextures textures_;
  MapLayer layer_;
  std::vector<HeadId> seen_;
  void draw_filter(const Ui& ui, float width, const AtlasLook& look, PanelRequests& requests);

  float zoom_ = 1;  ///< of cells, by Ctrl and the wheel
  std::array<char, 256> filter_{};
  bool typing_ = false;  ///< in the filter's field
  float scroll_ = 0;     ///< how far down the atlas is
  std::optional<double> scrolled_at_;
  std::optional<HeadId> preview_;  ///< the head that was pointed at last
  /// Of thumbnails, and for how many of them the range was chosen.
  struct Colours {
    Pool pool = Pool::max;
    ScaleKind scale = ScaleKind::log2;
    std::string map;
    size_t sketches = 0;
    std::optional<ColourScale> fitted;
  };
  Colours colours_;
};

}  // namespace attnscope
