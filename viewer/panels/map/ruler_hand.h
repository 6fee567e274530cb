#pragma once

#include <optional>
#include <string>

#include "viewer/panels/map/rulers.h"
#include "viewer/panels/map/view_transform.h"
#include "viewer/view/view_actions.h"

namespace attnscope {

/// The block of an order around a place, along the ruler's axis, as a click on it shows it.
action::SetRect shown_block(const RulerAxis& axis, const ViewTransform& view, int64_t place);

/// The mouse on a ruler: the wheel zooms its axis alone, a drag chooses what is seen of it, a click
/// the frame (or text, or block) there, a double click all of it.
class RulerHand {
 public:
  /// `name` is the ruler's in labels: Matrix/NAME, and NAME/t2, NAME/text for what stands on it.
  explicit RulerHand(std::string name) : name_(std::move(name)) {}

  /// A change of the view.
  struct Wish {
    Action by;
    bool instead = false;  ///< of what the first click of a double click has changed
  };
  /// Draws what is dragged over, over ruler and map. Gives what is wanted.
  std::optional<Wish> take(const Ui& ui, const ScreenRect& ruler, const RulerAxis& axis,
                           const ViewTransform& view);
  /// Gives up the drag or click that goes on; false where none does.
  bool cancel();

 private:
  void draw_span(const Ui& ui, const ScreenRect& ruler, const RulerAxis& axis,
                 const ViewTransform& view, double from, double to) const;
  void label_blocks(const Ui& ui, const ScreenRect& ruler, const RulerAxis& axis) const;

  std::string name_;
  double from_ = 0;       ///< the place where the button went down
  float pressed_at_ = 0;  ///< its pixel along the ruler
  bool dragged_ = false;  ///< since then
  bool done_ = false;     ///< the click that goes on was taken already, or given up
  bool held_ = false;     ///< a click or drag goes on
  bool clicked_ = false;  ///< the press before was a click
};

}  // namespace attnscope
