#include "viewer/view/window_size.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace attnscope {

bool is_window_size(WindowSize size) { return clamped(size) == size; }

WindowSize clamped(WindowSize size) {
  return {std::clamp(size.width, kLeastWindow.width, kLargestWindow.width),
          std::clamp(size.height, kLeastWindow.height, kLargestWindow.height)};
}

WindowSize first_window_size(float scale, WindowSize work_area) {
  const auto side = [scale](int usual, int most) {
    const int wanted = static_cast<int>(std::lround(static_cast<float>(usual) * scale));
    return most > 0 ? std::min(wanted, most) : wanted;
  };
  const WindowSize usual;
  return clamped({side(usual.width, work_area.width), side(usual.height, work_area.height)});
}

std::string window_size_limits() {
  return fmt::format("{}x{} to {}x{}", kLeastWindow.width, kLeastWindow.height,
                     kLargestWindow.width, kLargestWindow.height);
}

}  // namespace attnscope
