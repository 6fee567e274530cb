#pragma once

#include "viewer/panels/scene.h"

namespace attnscope {

/// The row of controls at the top: which head, and how it is shown. Wraps where the window is
/// narrow. Stateless but for its height.
class Toolbar {
 public:
  /// Pixels that it takes at this width, as drawn last.
  float height() const { return height_; }
  void draw(const Ui& ui, const ScreenRect& rect, const Scene& scene, PanelRequests& requests);

 private:
  void head_choices(const Ui& ui, const Scene& scene, PanelRequests& requests);
  void appearance(const Ui& ui, const Scene& scene, PanelRequests& requests);
  void window_buttons(const Ui& ui, const Scene& scene, PanelRequests& requests);
  /// Goes on in the same line, or in a new one where `width` has no room; `gap` before it.
  void flow(const Ui& ui, float width, float gap);

  float height_ = 40;
  ScreenRect rect_;
  bool first_ = true;
};

}  // namespace attnscope
