#pragma once

#include <array>

#include "viewer/panels/widgets.h"
#include "viewer/view/mask_text.h"

namespace attnscope {

/// A sparse mask of the head: its pattern with its numbers as sliders, or its file, and what it
/// keeps beside what the best mask of its density would.
class MaskPanel {
 public:
  void draw(const Ui& ui, const ScreenRect& rect, const Scene& scene, PanelRequests& requests);

 private:
  void draw_choice(const Ui& ui, const ScreenRect& rect, const Scene& scene,
                   PanelRequests& requests) const;
  void draw_text(const Ui& ui, const ScreenRect& rect, const Scene& scene, PanelRequests& requests);
  /// Gives the y below them.
  static float draw_sliders(const Ui& ui, const ScreenRect& rect, const Scene& scene,
                            PanelRequests& requests);
  static float draw_first_masks(const Ui& ui, const ScreenRect& rect, const Scene& scene,
                                PanelRequests& requests);
  static float draw_tools(const Ui& ui, const ScreenRect& rect, const Scene& scene,
                          PanelRequests& requests);
  static float draw_lost(const Ui& ui, const ScreenRect& rect, const Scene& scene);
  static float draw_numbers(const Ui& ui, const ScreenRect& rect, const Scene& scene);
  float draw_below(const Ui& ui, const ScreenRect& rect, const Scene& scene,
                   PanelRequests& requests);

  std::array<char, 512> text_{};  ///< being typed
  bool typing_ = false;
  float problem_height_ = 0;  ///< of why there is no mask, in the last frame
};

}  // namespace attnscope
