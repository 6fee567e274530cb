#pragma once

#include <functional>
#include <string>
#include <vector>

#include "viewer/panels/scene.h"

namespace attnscope {

/// The controls at the top: which head, and how it is shown. They wrap where the window is narrow;
/// where they would take too much of its height, one line names the head, and a menu has them all.
/// Stateless but for its height.
class Toolbar {
 public:
  /// Pixels that it takes at this width, as drawn last.
  float height() const { return height_; }
  /// `most`: pixels that it may take without folding into one line.
  void draw(const Ui& ui, const ScreenRect& rect, float most, const Scene& scene,
            PanelRequests& requests);

 private:
  /// One of the controls, or several that stay together: the pixels that it takes, and the gap
  /// before it in those of a display of scale 1.
  struct Control {
    float width = 0, gap = 0;
    std::function<void()> draw;
  };
  using Controls = std::vector<Control>;

  /// Adds a choice for each axis that tells a picker's heads apart; labels begin with `pane`.
  void add_head_choices(const Ui& ui, const HeadPicker& picker, const HeadId& here,
                        const std::string& pane, const std::function<void(const HeadId&)>& take,
                        Controls& to);
  /// Side B: whether there is one, which head it is, how the two are shown.
  void add_comparison(const Ui& ui, const Scene& scene, PanelRequests& requests, Controls& to);
  void add_difference_choice(const Ui& ui, const OtherSide& other, const ViewState& state,
                             PanelRequests& requests, Controls& to);
  void add_appearance(const Ui& ui, const Scene& scene, PanelRequests& requests, Controls& to);
  void add_pane_menu(const Ui& ui, const Scene& scene, PanelRequests& requests, Controls& to);
  void add_window_buttons(const Ui& ui, const Scene& scene, PanelRequests& requests, Controls& to);
  /// Pixels that they take where lines are `width` pixels long.
  float controls_height(const Ui& ui, const Controls& controls, float width) const;
  /// Both give the y below the last line. Controls flow within rect_.
  float draw_controls(const Ui& ui, const Controls& controls);
  float draw_folded(const Ui& ui, const ScreenRect& rect, const Scene& scene,
                    const Controls& controls);

  float height_ = 40;
  ScreenRect rect_;  ///< that the controls flow in
};

}  // namespace attnscope
