#pragma once

#include <array>
#include <string>

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
  /// The numbers under the marks: a click makes a field of one.
  void draw_ends(const Ui& ui, const ScreenRect& plot, const Scene& scene, const ColourScale& axis,
                 PanelRequests& requests);
  void type_end(const Ui& ui, const ScreenRect& place, const Scene& scene, PanelRequests& requests);
  /// Takes what was typed; why it is no end of the colours stays in typed_problem_.
  void take_typed(const Scene& scene, PanelRequests& requests);

  int dragged_ = -1;             ///< 0: the low end, 1: the high one
  int typed_ = -1;               ///< the end whose number is a field, as dragged_
  bool opens_ = false;           ///< the field was just asked for, or its text refused
  std::array<char, 32> text_{};  ///< of the field
  std::string typed_problem_;
  ValueRange axis_range_{0, 1};  ///< held while an end is dragged
};

}  // namespace attnscope
