#pragma once

#include "viewer/panels/atlas_panel.h"
#include "viewer/panels/dialogs/warning_banner.h"
#include "viewer/panels/frames_panel.h"
#include "viewer/panels/histogram_panel.h"
#include "viewer/panels/map/magnifier.h"
#include "viewer/panels/map/matrix_panel.h"
#include "viewer/panels/mask_panel.h"
#include "viewer/panels/ranked_panel.h"
#include "viewer/panels/row/query_panel.h"
#include "viewer/panels/row/volume_panel.h"
#include "viewer/panels/row/words_panel.h"
#include "viewer/panels/status_line.h"
#include "viewer/panels/timeline_panel.h"
#include "viewer/panels/toolbar.h"

namespace attnscope {

/// The panels of an open capture and where they stand: toolbar, the heads where they are shown,
/// matrix, query (its film or its volume) and histogram, status line, with splitters between them;
/// the steps under the toolbar where there are several.
class PanelSet {
 public:
  PanelSet(gl::MapPainter& painter, TileTextures& textures)
      : atlas_(painter), matrix_(painter, textures), query_(painter), frames_(painter) {}

  /// Fills the window.
  void draw(const Ui& ui, const ScreenRect& window, const Scene& scene, PanelRequests& requests);
  const VolumePanel& volume() const { return volume_; }
  const MatrixPanel& matrix() const { return matrix_; }
  const QueryPanel& query() const { return query_; }
  const AtlasPanel& atlas() const { return atlas_; }
  AtlasPanel& atlas() { return atlas_; }
  bool cancel_drag() { return matrix_.cancel_drag(); }

 private:
  ScreenRect draw_left(const Ui& ui, const ScreenRect& rect, const Scene& scene,
                       PanelRequests& requests);
  void draw_split(const Ui& ui, const ScreenRect& whole, const Scene& scene,
                  PanelRequests& requests);
  /// The share of the right column's height that this pane takes below the query.
  float& share_below(ViewPane pane);
  ScreenRect draw_below(const Ui& ui, const ScreenRect& column, const Scene& scene,
                        PanelRequests& requests);
  void draw_pane(ViewPane pane, const Ui& ui, const ScreenRect& rect, const Scene& scene,
                 PanelRequests& requests);
  /// A bar to drag along x (or y); gives how far it was dragged.
  float splitter(const Ui& ui, const char* label, const ScreenRect& rect, bool upright);

  Toolbar toolbar_;
  AtlasPanel atlas_;
  MatrixPanel matrix_;
  Magnifier magnifier_;
  QueryPanel query_;
  VolumePanel volume_;
  TimelinePanel timeline_;
  HistogramPanel histogram_;
  WordsPanel words_;
  RankedPanel ranked_;
  MaskPanel mask_;
  FramesPanel frames_;
  // Shares of the right column's height.
  float ranked_share_ = 0.36f, mask_share_ = 0.46f, frames_share_ = 0.44f, histogram_share_ = 0.3f;
  float atlas_share_ = 0.26f;  ///< of the window's width
  float words_share_ = 0.45f;  ///< of the left column's height, below the atlas
};

}  // namespace attnscope
