#pragma once

#include <memory>
#include <optional>
#include <string>

#include "viewer/screen/screen.h"

namespace attnscope {

/// True where the environment names a display.
bool has_display();

/// A window of the desktop, or a hidden one; `size`, none: as Window::Settings says. Throws
/// Error(unavailable) where there is no display, or no OpenGL 3.3. One at a time.
std::unique_ptr<Screen> open_glfw_screen(const std::string& title, std::optional<WindowSize> size,
                                         bool visible, ScreenEvents events);

}  // namespace attnscope
