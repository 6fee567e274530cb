#pragma once

#include <array>
#include <deque>
#include <optional>

namespace attnscope {

/// The events of the mouse since the last frame, handed out so that no frame hides any of them: two
/// clicks that came while one slow frame was drawn are two clicks of the next frames. ImGui sees a
/// button once a frame, and tells a double click by the time of its frames; here both follow what
/// really happened. Times in seconds of one clock.
class MouseEvents {
 public:
  static constexpr int kButtons = 3;
  /// Clicks that are so near to each other are a double click.
  static constexpr double kDoubleClickSeconds = 0.3;

  void moved(double x, double y);
  void button(int button, bool down, double seconds);
  /// Everything that has happened was handed out.
  bool done() const { return events_.empty(); }

  struct State {
    std::array<bool, kButtons> down{};
    std::optional<std::array<double, 2>> at;  ///< nothing: where the mouse is now
    /// Of the button that goes down with this state: whether it did so a moment before.
    bool repeated = false;
  };
  /// For the next frame: all that happened up to where a frame must lie between.
  State next();

 private:
  struct Event {
    double x = 0, y = 0;
    int button = -1;  ///< none: a move
    bool down = false;
    double seconds = 0;
  };
  void apply(const Event& event, State& state);

  std::deque<Event> events_;
  double x_ = 0, y_ = 0;  ///< of the last event
  std::array<bool, kButtons> down_{};
  std::array<double, kButtons> pressed_at_{-1, -1, -1};  ///< as handed out; below 0: never
};

}  // namespace attnscope
