#pragma once

#include <optional>
#include <string>

#include "viewer/panels/map/rulers.h"
#include "viewer/panels/map/view_transform.h"
#include "viewer/view/view_actions.h"

namespace attnscope {

/// The mouse on a ruler: the wheel zooms its axis alone, a drag chooses what is seen of it, a click
/// the frame (or text, or block) there, a double click all of it.
class RulerHand {
 public:
  /// `name` is the ruler's in labels: Matrix/NAME, and NAME/t2, NAME/text for what stands on it.
  explicit RulerHand(std::string name) : name_(std::move(name)) {}

  /// Draws what is dragged over, over ruler and map. Gives the change of the view that is wanted.
  std::optional<Action> take(const Ui& ui, const ScreenRect& ruler, const RulerAxis& axis,
                             const ViewTransform& view);

 private:
  void draw_span(const Ui& ui, const ScreenRect& ruler, const RulerAxis& axis,
                 const ViewTransform& view, double from, double to) const;
  void label_blocks(const Ui& ui, const ScreenRect& ruler, const RulerAxis& axis) const;

  std::string name_;
  double from_ = 0;       ///< the place where the button went down
  bool dragged_ = false;  ///< since then
  bool done_ = false;     ///< the click that goes on was taken already
};

}  // namespace attnscope
