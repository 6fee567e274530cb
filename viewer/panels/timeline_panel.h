#pragma once

#include "viewer/panels/widgets.h"
#include "viewer/view/heads/timeline.h"

namespace attnscope {

/// The recorded steps as ticks, a row a branch, with the present one marked; a click or a drag goes
/// there, and they play by themselves. Above them a number of the head as a curve over the steps,
/// or over the layers of the step.
class TimelinePanel {
 public:
  /// False where there is nothing to show of the steps: one was recorded, and there is no curve.
  static bool is_seen(const Scene& scene);
  /// The height of the strip in pixels; 0: it is not shown.
  static float strip_height(const Ui& ui, const Scene& scene);
  void draw_strip(const Ui& ui, const ScreenRect& rect, const Scene& scene,
                  PanelRequests& requests);
  /// Draws the strip as a pane of its own, with a header.
  void draw(const Ui& ui, const ScreenRect& rect, const Scene& scene, PanelRequests& requests);

 private:
  void draw_play(const Ui& ui, const Scene& scene, PanelRequests& requests);
  void draw_curve_choice(const Ui& ui, const Scene& scene, PanelRequests& requests);
  /// The controls at the left; gives the x where they end.
  float draw_controls(const Ui& ui, const ScreenRect& rect, const Scene& scene,
                      PanelRequests& requests);
  void draw_track(const Ui& ui, const ScreenRect& rect, const Scene& scene,
                  PanelRequests& requests);
  void draw_curve_of(const Ui& ui, const ScreenRect& plot, const Scene& scene,
                     PanelRequests& requests);
  void draw_row(const Ui& ui, const ScreenRect& track, float y, size_t row,
                const Scene& scene) const;
  void draw_names(const Ui& ui, const ScreenRect& track, float y, const Scene& scene) const;
  void take_mouse(const Ui& ui, const ScreenRect& track, const ScreenRect& rows, const Scene& scene,
                  PanelRequests& requests);
};

}  // namespace attnscope
