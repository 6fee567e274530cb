#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "viewer/panels/legend.h"
#include "viewer/panels/row/film_view.h"
#include "viewer/panels/widgets.h"

namespace attnscope {

/// The picked or pointed-at token's row (reverse: column) as frames of the video, or as a list
/// where its other side has no grid.
class QueryPanel {
 public:
  explicit QueryPanel(gl::MapPainter& painter) : film_(painter) {}

  void draw(const Ui& ui, const ScreenRect& rect, const Scene& scene, PanelRequests& requests);
  /// True where the panel drew a line in the last frame, and not a text in its place.
  bool shown() const { return shown_; }
  /// Before a frame in which it may not be drawn: what was drawn last is not shown any more.
  void begin_frame() { shown_ = false; }
  /// The film that was drawn last, and the scale of its colours; null: there is none.
  const FilmView* film() const { return shown_ && filmed_.has_grid() ? &film_ : nullptr; }
  const std::optional<ColourScale>& scale() const { return scale_; }
  /// The token or words that the line is of, and the unit of its numbers: "(3, 8, 7)", "weight".
  const std::string& what() const { return what_; }
  const std::string& unit() const { return unit_; }

 private:
  void take_line(const Scene& scene);
  void draw_film(const Ui& ui, const ScreenRect& area, const Scene& scene, PanelRequests& requests);
  void segment_choice(const Ui& ui, const ScreenRect& room, const Scene& scene,
                      PanelRequests& requests) const;
  std::string bars_text() const;
  void draw_list(const Ui& ui, const ScreenRect& area, const Scene& scene, const TokenNames& side);
  void explain(const Ui& ui, const ScreenRect& area, const Scene& scene,
               const std::string& note) const;

  FilmView film_;
  std::string what_, unit_;
  bool shown_ = false;
  /// The inputs that the scale was made from.
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
  ValueRange bars_;               ///< what the bars of the list go from and to
  std::vector<uint8_t> evicted_;  ///< tokens that a cache had dropped: 1; empty: none
  SeenSpecials specials_;         ///< of the line
};

}  // namespace attnscope
