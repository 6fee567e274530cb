#pragma once

#include <string>

namespace attnscope {

/// Of the window, in its own units (pixels on most displays).
struct WindowSize {
  int width = 1280, height = 800;
  friend bool operator==(const WindowSize&, const WindowSize&) = default;
};

/// The least size that the panels are laid out in; a smaller window shows a part of it.
inline constexpr WindowSize kLeastWindow{320, 240};
inline constexpr WindowSize kLargestWindow{16384, 16384};

bool is_window_size(WindowSize size);
/// The nearest size that a window can have.
WindowSize clamped(WindowSize size);
/// The size that a window opens with on a display of this scale (1 or more), within its work area
/// (0 × 0: not known).
WindowSize first_window_size(float scale, WindowSize work_area);
/// "320x240 to 16384x16384", for messages.
std::string window_size_limits();

}  // namespace attnscope
