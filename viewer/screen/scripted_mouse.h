#pragma once

#include <deque>
#include <optional>

namespace attnscope {

/// Feeds a scripted mouse to ImGui in place of the real one: the one file that knows how the
/// installed version takes input. (Keys go to the window's commands directly, as chords.)
class ScriptedMouse {
 public:
  /// Moves there, presses, lets go and leaves, over the next few frames: no hint stays behind to
  /// cover what a picture is to show.
  void click(float x, float y);
  /// Presses at one place, moves to another in some steps, lets go there and leaves; with Shift or
  /// Ctrl held.
  void drag(float x0, float y0, float x1, float y1, bool shift, bool ctrl);
  /// Moves there, turns the wheel a notch a frame, and leaves.
  void wheel(float x, float y, int notches);
  /// Moves there and stays.
  void hover(float x, float y) { steps_.push_back({x, y}); }
  /// True where all steps were fed.
  bool done() const { return steps_.empty(); }
  /// Call between the backend's NewFrame and ImGui's.
  void feed();

 private:
  struct Step {
    float x = 0, y = 0;
    bool down = false;
    bool shift = false, ctrl = false;
    float wheel = 0;
  };
  std::deque<Step> steps_;
  std::optional<Step> last_;
  bool shift_ = false, ctrl_ = false;  ///< held since the last step
};

}  // namespace attnscope
