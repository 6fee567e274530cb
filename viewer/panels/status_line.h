#pragma once

#include "viewer/panels/scene.h"

namespace attnscope {

/// One line: the entry under the mouse, `tracks` (what stands beside the map there; may be empty),
/// and how the work stands.
void draw_status_line(const Ui& ui, const ScreenRect& rect, const Scene& scene,
                      const std::string& resolution, const std::string& tracks);
constexpr float kStatusHeight = 26;

}  // namespace attnscope
