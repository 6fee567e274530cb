#pragma once

#include <cstddef>
#include <deque>

#include "viewer/view/view_actions.h"
#include "viewer/view/view_state.h"

namespace attnscope {

/// Moves and zooms (and the drags of a splitter, of the colours' ends or of the volume) that follow
/// each other within so many seconds are one gesture, and one step of undo.
inline constexpr double kGestureGap = 0.7;
/// The seconds within which steps that are played or scrubbed through are one gesture.
inline constexpr double kScrubGap = 12;
/// Steps that can be undone; older ones are forgotten.
inline constexpr size_t kHistorySteps = 500;

/// The state that is shown, with what it was before: a step back (Ctrl+Z, Alt+Left) and forth. Has
/// no clock of its own. Not thread-safe.
class ViewHistory {
 public:
  explicit ViewHistory(ViewState start) : now_(std::move(start)) {}

  const ViewState& now() const { return now_; }
  /// Applies an action at the time `seconds` of any steady clock. An action that changes nothing is
  /// no step. Throws what apply_action() throws, and is then as it was.
  void apply(const Action& action, const ViewLimits& limits, double seconds);
  /// Shows another state that can be, as one step.
  void become(ViewState next);
  /// The mouse's button is held in a frame at the time `seconds`; `pressed`: it went down in it.
  /// Moves meanwhile are one gesture, however long their frames take.
  void hold_gesture(double seconds, bool pressed);
  /// Ends the gesture: the mouse button was let go. The next move is a step of its own.
  void end_gesture() { gesture_ = Gesture::none; }
  /// Takes the step back that the action before made, if it made one: what comes is in its place.
  void take_back();
  bool can_undo() const { return !before_.empty(); }
  bool can_redo() const { return !after_.empty(); }
  /// One step back or forth; false where there is none.
  bool undo();
  bool redo();
  /// Another capture: nothing to go back to.
  void restart(ViewState start);

 private:
  enum class Gesture : uint8_t {
    none,
    move,
    split,
    range,
    moment,
    volume,
    scrub,
    line,
    other,
    mask
  };
  static Gesture gesture_of(const Action& action);
  /// Keeps the state as one to go back to.
  void record();

  ViewState now_;
  std::deque<ViewState> before_, after_;
  Gesture gesture_ = Gesture::none;
  bool recorded_ = false;  ///< the gesture has its step already
  double last_ = 0;
};

}  // namespace attnscope
