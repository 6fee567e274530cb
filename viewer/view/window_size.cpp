#include "viewer/view/window_size.h"

#include <fmt/core.h>

#include <algorithm>

namespace attnscope {

bool is_window_size(WindowSize size) { return clamped(size) == size; }

WindowSize clamped(WindowSize size) {
  return {std::clamp(size.width, kLeastWindow.width, kLargestWindow.width),
          std::clamp(size.height, kLeastWindow.height, kLargestWindow.height)};
}

std::string window_size_limits() {
  return fmt::format("{}x{} to {}x{}", kLeastWindow.width, kLeastWindow.height,
                     kLargestWindow.width, kLargestWindow.height);
}

}  // namespace attnscope
