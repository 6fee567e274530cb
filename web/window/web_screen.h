#pragma once

#include <functional>

#include "viewer/screen/open_screen.h"

namespace attnscope {

/// What the canvas of the page has that a Screen does not: there is one of these, which
/// open_screen() made, and none before.
struct WebScreenTurns {
  /// Called where the next frame should come soon: something happened.
  std::function<void()> wake;
  /// Of the last Screen::wait(): how long the window could have slept, in seconds; below 0: for as
  /// long as it takes. It does not sleep itself, which would stop the page.
  double sleep = 0;
};
WebScreenTurns& web_screen_turns();

}  // namespace attnscope
