#pragma once

#include "viewer/panels/widgets.h"

namespace attnscope {

/// How often which values are seen, on a log axis, with the ends of the colours to be dragged.
class HistogramPanel {
 public:
  void draw(const Ui& ui, const ScreenRect& rect, const Scene& scene, PanelRequests& requests);

 private:
  void draw_nothing(const Ui& ui, const ScreenRect& plot, const Scene& scene) const;
  void draw_bars(const Ui& ui, const ScreenRect& plot, const Scene& scene,
                 const ColourScale& axis) const;
  void drag_ends(const Ui& ui, const ScreenRect& plot, const Scene& scene, const ColourScale& axis,
                 PanelRequests& requests);
  int dragged_ = -1;             ///< 0: the low end, 1: the high one
  ValueRange axis_range_{0, 1};  ///< held while an end is dragged
};

}  // namespace attnscope
