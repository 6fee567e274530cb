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
/// large as the pane has room for. The mouse shows a head in the other panes, a click takes it; so
/// do a cursor that the arrow keys move, and Enter. Several heads are selected with Ctrl, Shift or
/// a box.
class AtlasPanel {
 public:
  explicit AtlasPanel(gl::MapPainter& painter) : layer_(painter) {}

  void draw(const Ui& ui, const ScreenRect& rect, const Scene& scene, PanelRequests& requests);
  /// Lets go of the heads of the capture that was open.
  void forget();
  /// Begins a frame, in which it may not be drawn.
  void begin_frame() { drawn_ = false; }
  /// True where the pane of the last frame is who a key is for: the mouse is over it, or it was
  /// clicked last and the mouse is not `elsewhere`, over what takes keys as well.
  bool takes(const KeyChord& chord, bool elsewhere) const;
  /// A key that it takes, for the next frame.
  void press(const KeyChord& chord) { keys_.push_back(chord); }
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
  /// Of the legend below the cells, with the air around it.
  float legend_height(const Ui& ui, const ScreenRect& above, const Scene& scene) const;
  Layout fit(const Ui& ui, const ScreenRect& area, const Scene& scene) const;
  void draw_cells(const Ui& ui, const ScreenRect& area, const Scene& scene,
                  PanelRequests& requests);
  std::vector<Cell> visible_cells(const Ui& ui, const Layout& layout, const ImVec2& origin,
                                  const ScreenRect& area, const Scene& scene);
  void draw_thumbnails(const Ui& ui, const std::vector<Cell>& cells, const ScreenRect& area,
                       const Scene& scene);
  /// Of a head, `column` cells right of the first of its row.
  static ScreenRect cell_rect(const Ui& ui, const Layout& layout, const ImVec2& origin,
                              const AtlasRow& row, size_t column);
  /// A head in words, with its numbers, or why there are none.
  static std::string text_of(const Cell& cell, const Scene& scene);
  static void draw_classes(const Ui& ui, const std::vector<Cell>& cells);
  static void draw_numbers(const Ui& ui, const std::vector<Cell>& cells, const Scene& scene);
  static void draw_names(const Ui& ui, const std::vector<Cell>& cells, const Scene& scene);
  static void draw_marks(const Ui& ui, const std::vector<Cell>& cells, const Scene& scene);
  void draw_cursor(const Ui& ui, const std::vector<Cell>& cells, const Scene& scene,
                   PanelRequests& requests);
  void point_at(const Ui& ui, const std::vector<Cell>& cells, bool clicked, const Scene& scene,
                PanelRequests& requests);
  void click_on(const AtlasHead& head, const Scene& scene, PanelRequests& requests);
  /// Does what the keys say, and scrolls to the cursor.
  void take_keys(const AtlasLayout& layout, const ScreenRect& area, const Scene& scene,
                 PanelRequests& requests);
  void take_key(const KeyChord& chord, const AtlasLayout& layout, const Scene& scene,
                PanelRequests& requests);
  /// A box that is dragged over the cells, of the item that was drawn last.
  void drag_box(const Ui& ui, const Layout& layout, const ImVec2& origin, const Scene& scene,
                PanelRequests& requests);
  static float selection_width(const Ui& ui, const ScreenRect& rect, const Scene& scene);
  static void draw_selection_buttons(const Ui& ui, const ScreenRect& rect, const Scene& scene,
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

  std::vector<KeyChord> keys_;    ///< since the last frame
  std::optional<HeadId> cursor_;  ///< of the arrow keys
  bool by_keys_ = false;          ///< it was moved by them last, not by the mouse
  std::optional<HeadId> anchor_;  ///< from which Shift and a click select
  ImVec2 box_from_{};             ///< where the button went down, from the first cell
  bool boxing_ = false;           ///< it was dragged since
  /// In the last frame: the pane was drawn, the mouse was over it, it was the whole window's.
  bool drawn_ = false, over_ = false, maximised_ = false;
  bool focused_ = false;  ///< the last click was in it
  /// When heads began to become exact, and how many were.
  struct Pace {
    double since = 0;
    int64_t exact = 0;
  };
  std::optional<Pace> pace_;
};

}  // namespace attnscope
