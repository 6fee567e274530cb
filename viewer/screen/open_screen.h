#pragma once

#include <memory>
#include <optional>
#include <string>

#include "viewer/screen/screen.h"

namespace attnscope {

/// The screen of a window, with its OpenGL context current on this thread. A hidden one needs no
/// display. Throws Error(unavailable) where there is none for a visible window, or no OpenGL that
/// the window can draw with. `size`, none: as Window::Settings says. (A window in a browser has
/// another one: web/window.)
std::unique_ptr<Screen> open_screen(const std::string& title, std::optional<WindowSize> size,
                                    bool visible, ScreenEvents events);

}  // namespace attnscope
