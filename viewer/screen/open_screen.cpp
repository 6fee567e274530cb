#include "viewer/screen/open_screen.h"

#include "core/base/error.h"
#include "viewer/screen/glfw_screen.h"
#include "viewer/screen/offscreen.h"

namespace attnscope {

/// A hidden window is on the display where there is one, so that the card behind it draws.
std::unique_ptr<Screen> open_screen(const std::string& title, std::optional<WindowSize> size,
                                    bool visible, ScreenEvents events) {
  if (visible) return open_glfw_screen(title, size, true, std::move(events));
  if (has_display()) {
    try {
      return open_glfw_screen(title, size, false, std::move(events));
    } catch (const Error&) {
      // A display that is gone, or has no OpenGL: nobody would have seen the window there.
    }
  }
  return open_offscreen(size.value_or(WindowSize{}));
}

}  // namespace attnscope
