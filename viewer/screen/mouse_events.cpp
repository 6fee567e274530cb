#include "viewer/screen/mouse_events.h"

#include <algorithm>

namespace attnscope {

void MouseEvents::moved(double x, double y) {
  x_ = x;
  y_ = y;
  // Only the way between what buttons did matters, and the end of it.
  if (!events_.empty() && events_.back().button < 0) {
    events_.back() = {x, y};
  } else if (!events_.empty()) {
    events_.push_back({x, y});
  }
}

void MouseEvents::button(int button, bool down, double seconds) {
  if (button < 0 || button >= kButtons) return;
  events_.push_back({x_, y_, button, down, seconds});
}

void MouseEvents::apply(const Event& event, State& state) {
  state.at = {event.x, event.y};
  if (event.button < 0) return;
  const auto index = static_cast<size_t>(event.button);
  down_[index] = event.down;
  if (!event.down) return;
  double& before = pressed_at_[index];
  state.repeated = before >= 0 && event.seconds - before < kDoubleClickSeconds;
  before = event.seconds;
}

MouseEvents::State MouseEvents::next() {
  State state;
  std::array<bool, kButtons> changed{};
  const auto any = [](const std::array<bool, kButtons>& buttons) {
    return std::find(buttons.begin(), buttons.end(), true) != buttons.end();
  };
  bool dragged = false;
  while (!events_.empty()) {
    const Event& event = events_.front();
    // A button is seen once a frame; a frame with a button held sees where it was dragged.
    const bool hidden =
        event.button < 0 ? any(changed) : changed[static_cast<size_t>(event.button)] || dragged;
    if (hidden) break;
    if (event.button >= 0) changed[static_cast<size_t>(event.button)] = true;
    dragged = event.button < 0 && any(down_);
    apply(event, state);
    events_.pop_front();
  }
  state.down = down_;
  return state;
}

}  // namespace attnscope
