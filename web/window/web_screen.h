#pragma once

#include <functional>

#include "viewer/screen/open_screen.h"

namespace attnscope {

/// The exchange between the page and its one screen that Screen has no members for: the page itself
/// sleeps, and is woken for the next frame.
struct WebScreenTurns {
  /// Called where the next frame should come soon: something happened.
  std::function<void()> wake;
  /// Of the last Screen::wait(): how long the window could have slept, in seconds; below 0: for as
  /// long as it takes. It does not sleep itself, which would stop the page.
  double sleep = 0;
};
WebScreenTurns& web_screen_turns();

}  // namespace attnscope
