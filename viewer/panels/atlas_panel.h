#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "viewer/panels/map_layer.h"
#include "viewer/panels/scene.h"
#include "viewer/textures/sketch_textures.h"
#include "viewer/view/heads/atlas_layout.h"

namespace attnscope {

/// Every head of the step: a thumbnail, its class or a number each, layers by heads or sorted, as
/// large as the pane has room for. The mouse shows a head in the other panes, a click takes it.
class AtlasPanel {
 public:
  explicit AtlasPanel(gl::MapPainter& painter) : layer_(painter) {}

  void draw(const Ui& ui, const ScreenRect& rect, const Scene& scene, PanelRequests& requests);
  /// The heads whose cells were seen in the last frame, from the top.
  const std::vector<HeadId>& seen() const { return seen_; }
  int64_t texture_bytes() const { return textures_.bytes(); }

 private:
  /// What is drawn in the cells.
  enum class Content : uint8_t { thumbnails, classes, numbers };
  /// Where the cells stand in the pane.
  struct Layout {
    AtlasLayout cells;
    float labels = 0;  ///< width of the layers' names
    float heads = 0;   ///< height of the heads' numbers, above the cells
    float name = 0;    ///< height of the names below cells of a sorted atlas
    Content content = Content::thumbnails;
  };
  /// A cell that is seen.
  struct Cell {
    const AtlasHead* head = nullptr;
    std::shared_ptr<const HeadSketch> sketch;
    ScreenRect rect;
  };
  void draw_header(const Ui& ui, const ScreenRect& rect, const Scene& scene,
                   PanelRequests& requests);
  std::string pace_text(const Scene& scene);
  /// Gives the y below them.
  float draw_controls(const Ui& ui, const ScreenRect& rect, const Scene& scene,
                      PanelRequests& requests);
  void draw_filter(const Ui& ui, float width, const AtlasLook& look, PanelRequests& requests);
  Layout fit(const Ui& ui, const ScreenRect& area, const Scene& scene) const;
  void draw_cells(const Ui& ui, const ScreenRect& area, const Scene& scene,
                  PanelRequests& requests);
  std::vector<Cell> visible_cells(const Ui& ui, const Layout& layout, const ImVec2& origin,
                                  const ScreenRect& area, const Scene& scene);
  void draw_thumbnails(const Ui& ui, const std::vector<Cell>& cells, const ScreenRect& area,
                       const Scene& scene);
  static void draw_classes(const Ui& ui, const std::vector<Cell>& cells);
  static void draw_numbers(const Ui& ui, const std::vector<Cell>& cells, const Scene& scene);
  static void draw_names(const Ui& ui, const std::vector<Cell>& cells, const Scene& scene);
  static void draw_marks(const Ui& ui, const std::vector<Cell>& cells, const Scene& scene);
  void point_at(const Ui& ui, const std::vector<Cell>& cells, bool clicked, const Scene& scene,
                PanelRequests& requests);
  bool is_scrolling(const Scene& scene, PanelRequests& requests);
  void draw_legend_of(const Ui& ui, const ScreenRect& rect, const Scene& scene,
                      PanelRequests& requests) const;

  SketchTextures textures_;
  MapLayer layer_;
  std::vector<HeadId> seen_;
  Content content_ = Content::thumbnails;  ///< of the last frame's cells

  float zoom_ = 1;  ///< of cells, by Ctrl and the wheel
  std::array<char, 256> filter_{};
  bool typing_ = false;  ///< in the filter's field
  float scroll_ = 0;     ///< how far down the atlas is
  std::optional<double> scrolled_at_;
  std::optional<HeadId> preview_;  ///< the head that was pointed at last
  /// When heads began to become exact, and how many were.
  struct Pace {
    double since = 0;
    int64_t exact = 0;
  };
  std::optional<Pace> pace_;
};

}  // namespace attnscope
