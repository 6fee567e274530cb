#pragma once

#include <memory>

#include "viewer/screen/screen.h"

namespace attnscope {

/// A buffer that nobody sees, which needs no display (EGL, on a graphics card or in software), and
/// no process beside this one. Throws Error(unavailable) where OpenGL 3.3 cannot draw without one.
std::unique_ptr<Screen> open_offscreen(WindowSize size);

}  // namespace attnscope
