#pragma once

#include "viewer/panels/scene.h"

namespace attnscope {

/// One line: the entry under the mouse, and how the work stands.
void draw_status_line(const Ui& ui, const ScreenRect& rect, const Scene& scene,
                      const std::string& resolution);
constexpr float kStatusHeight = 26;

}  // namespace attnscope
