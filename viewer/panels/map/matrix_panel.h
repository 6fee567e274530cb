#pragma once

#include "viewer/panels/map/cell_numbers.h"
#include "viewer/panels/map/map_tracks.h"
#include "viewer/panels/map/mask_brushing.h"
#include "viewer/panels/map/mask_overlay.h"
#include "viewer/panels/map/mini_map.h"
#include "viewer/panels/map/ruler_hand.h"
#include "viewer/panels/map/token_lines.h"
#include "viewer/panels/map/view_transform.h"
#include "viewer/panels/map_layer.h"
#include "viewer/panels/widgets.h"
#include "viewer/textures/tile_textures.h"
#include "viewer/view/wanted_tiles.h"

namespace attnscope {

/// How well the part of the map that is seen is known.
struct SeenExactness {
  bool complete = false;  ///< something stands everywhere
  bool exact = false;     ///< all of it, at the view's own level
  int level = 0;
  int coarsest = 0;          ///< the level of the coarsest that stands there
  int64_t sampled_rows = 0;  ///< where not exact: rows a texel at the least, 0 for a coarser level
  bool failed = false;       ///< what is not exact yet will not come
};
/// "exact", "computing", "failed", "sampled 4 of 32 rows" …; of a call with rounded numbers not
/// "exact" but how they are rounded. What stands in for finer numbers says what it is pooled by.
std::string resolution_text(const SeenExactness& seen, const MapSource& call, Pool pool);

/// The map itself: zoomed and dragged, with rulers, frame lines, crosshair, a small overall view
/// and a legend.
class MatrixPanel {
 public:
  MatrixPanel(gl::MapPainter& painter, TileTextures& textures)
      : textures_(&textures),
        map_layer_(painter),
        other_layer_(painter),
        mini_(painter, textures) {}

  void draw(const Ui& ui, const ScreenRect& rect, const Scene& scene, PanelRequests& requests);

  /// Gives up what is dragged over a ruler; false where nothing is.
  bool cancel_drag();
  /// Video memory of the mask over the map.
  int64_t mask_texture_bytes() const { return mask_.texture_bytes(); }
  /// Size of the area that the map was drawn in last, for which tiles are asked.
  PaneSize pane_size() const { return pane_; }
  const SeenExactness& seen() const { return seen_; }
  /// Of the tracks beside the map, what is under the mouse; may be empty.
  const std::string& tracks_readout() const { return tracks_.readout(); }
  /// Colours of the map's tiles changed places: the mouse is held or turned.
  bool interacting() const { return interacting_; }

 private:
  struct Areas;
  static Areas areas_of(const Ui& ui, const ScreenRect& rect, const ViewState& state);
  SeenExactness draw_tiles(const Ui& ui, const Scene& scene, const ViewState& state,
                           const ColourScale& scale, const ScreenRect& clip,
                           const ViewTransform& view, MapLayer& layer);
  void draw_map(const Ui& ui, const Scene& scene, const ViewTransform& view);
  static float line_x(const Scene& scene, const ViewTransform& view);
  void draw_split_line(const Ui& ui, const Scene& scene, const ViewTransform& view,
                       PanelRequests& requests) const;
  void take_mouse(const Ui& ui, const Scene& scene, const ViewTransform& whole,
                  PanelRequests& requests);
  void pan_by_mouse(const Scene& scene, const ViewTransform& view, PanelRequests& requests);
  void brush(const Scene& scene, double along, PanelRequests& requests);
  void draw_rulers(const Ui& ui, const Areas& areas, const Scene& scene, const ViewTransform& view,
                   const std::optional<PickedChip>& chip, PanelRequests& requests);
  static void click_chip(const Ui& ui, const Scene& scene, const ViewTransform& view,
                         const PickedChip& chip, PanelRequests& requests);
  void draw_evicted(const Ui& ui, const Scene& scene, const ViewTransform& view) const;
  void draw_pins(const Ui& ui, const Scene& scene, const ViewTransform& view) const;
  void draw_brushed(const Ui& ui, const Scene& scene, const ViewTransform& view) const;
  void draw_footer(const Ui& ui, const ScreenRect& area, const Scene& scene,
                   PanelRequests& requests) const;

  static constexpr float kMiniSide = 88;  ///< of the map in small, right of the footer

  TileTextures* textures_;
  MaskOverlay mask_;
  MaskBrushing brushing_;
  MapLayer map_layer_, other_layer_;
  MiniMap mini_;
  MapTracks tracks_;
  RulerHand rows_hand_{"Queries"}, keys_hand_{"Keys"}, other_keys_hand_{"Keys of B"};
  PaneSize pane_;
  SeenExactness seen_;
  int other_level_ = 0;    ///< of side B's tiles, right of a split line
  CellNotation notation_;  ///< of the numbers in cells
  bool interacting_ = false;
  std::optional<double> brushed_from_;  ///< where the button went down with Shift
  IndexRange brushed_;                  ///< places that are dragged over
  bool dragged_ = false;                ///< since the button went down
  bool panning_ = false;                ///< the middle button is held, and went down on the map
  bool on_other_ = false;               ///< the mouse is, or went down, right of a split line
};

}  // namespace attnscope
