#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "viewer/panels/film_layout.h"
#include "viewer/panels/legend.h"
#include "viewer/panels/map_layer.h"
#include "viewer/panels/widgets.h"

namespace attnscope {

/// The picked or pointed-at token's row (reverse: column) as frames of the video, or as a list
/// where its other side has no grid.
class QueryPanel {
 public:
  explicit QueryPanel(gl::MapPainter& painter) : layer_(painter) {}

  void draw(const Ui& ui, const ScreenRect& rect, const Scene& scene, PanelRequests& requests);
  /// Whether the line of the picked query is what was drawn last.
  bool shown() const { return shown_; }

 private:
  void take_line(const Scene& scene);
  void draw_film(const Ui& ui, const ScreenRect& area, const Scene& scene, PanelRequests& requests);
  void film_mouse(const Ui& ui, const Scene& scene, PanelRequests& requests);
  void segment_choice(const Ui& ui, const ScreenRect& room, const Scene& scene,
                      PanelRequests& requests) const;
  void draw_evicted(const Ui& ui) const;
  void outline_chosen(const Ui& ui, const Scene& scene) const;
  void draw_list(const Ui& ui, const ScreenRect& area, const Scene& scene, const TokenNames& side);
  void draw_shares(const Ui& ui, float x, float y, float width, const Scene& scene,
                   const TokenNames& side) const;

  MapLayer layer_;
  gl::GridTexture grid_;
  FilmLayout film_;
  bool shown_ = false;
  /// What the texture and the scale were made of.
  struct Made {
    std::shared_ptr<const MapLine> line;
    ViewProduct product = ViewProduct::weights;
    ScaleKind scale = ScaleKind::log2;
    std::string colormap, segment;
    std::optional<Against> against = {};
    friend bool operator==(const Made&, const Made&) = default;
  } made_;
  TokenGrid filmed_;  ///< the tokens of the line, with the segment that is filmed as their video
  std::optional<ColourScale> scale_;
  std::vector<uint8_t> evicted_;  ///< tokens that a cache had dropped: 1; empty: none
  SeenSpecials specials_;         ///< of the line
  int64_t atlas_columns_ = 1;     ///< frames side by side in the texture
};

}  // namespace attnscope
