#pragma once

#include <functional>
#include <string>
#include <vector>

#include "viewer/panels/place_field.h"
#include "viewer/panels/scene.h"

namespace attnscope {

/// The controls at the top: the menu, which head, how it is shown, where one is; side B on a line
/// of its own, its lists under A's. They wrap where the window is narrow; where they would take too
/// much of its height, one line names the head, and a button has them all.
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
    bool begins_line = false;
  };
  using Controls = std::vector<Control>;
  /// A list of what tells heads apart; without words the room that the other side's list takes.
  struct AxisChoice {
    HeadAxis axis;
    std::vector<std::string> words;
    int chosen = -1;
    float box = 0;  ///< its width on a display of scale 1
  };

  static std::vector<AxisChoice> axis_choices(const Ui& ui, const HeadPicker& picker,
                                              const HeadId& here);
  /// Gives each axis of either side one place and one width.
  static void stand_together(std::vector<AxisChoice>& a, std::vector<AxisChoice>& b);
  /// Labels begin with `pane`.
  static void add_head_choices(const Ui& ui, const std::vector<AxisChoice>& choices,
                               const HeadPicker& picker, const HeadId& here,
                               const std::string& pane,
                               const std::function<void(const HeadId&)>& take, Controls& to);
  static void add_products(const Ui& ui, const Scene& scene, PanelRequests& requests, Controls& to);
  static void add_look(const Ui& ui, const Scene& scene, PanelRequests& requests, Controls& to);
  void add_fields(const Ui& ui, float taken, const Scene& scene, PanelRequests& requests,
                  Controls& to);
  /// Side B: whether there is one.
  static void add_comparison(const Ui& ui, const Scene& scene, PanelRequests& requests,
                             Controls& to);
  /// Which head side B is, and how the two are shown.
  static void add_other(const Ui& ui, const std::vector<AxisChoice>& choices, const Scene& scene,
                        PanelRequests& requests, Controls& to);
  static void add_difference_choice(const Ui& ui, const OtherSide& other, const ViewState& state,
                                    PanelRequests& requests, Controls& to);
  /// `opens`: with a button that opens a capture.
  void add_window_buttons(const Ui& ui, const Scene& scene, bool opens, PanelRequests& requests,
                          Controls& to);
  static float window_buttons_width(const Ui& ui, const Scene& scene, bool opens);
  /// Pixels that they take where lines are `width` pixels long.
  float controls_height(const Ui& ui, const Controls& controls, float width) const;
  /// Both give the y below the last line. Controls flow within rect_.
  float draw_controls(const Ui& ui, const Controls& controls);
  float draw_folded(const Ui& ui, const ScreenRect& rect, const Scene& scene,
                    PanelRequests& requests, const Controls& controls);

  float height_ = 40;
  ScreenRect rect_;  ///< that the controls flow in
  PlaceField place_;
};

}  // namespace attnscope
