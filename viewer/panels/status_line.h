#pragma once

#include "viewer/panels/scene.h"

namespace attnscope {

/// One line: the entry under the mouse, `tracks` (what stands beside the map there; may be empty),
/// and how the work stands. In its place what was just done, or what went wrong, of which a click
/// brings all that was told.
void draw_status_line(const Ui& ui, const ScreenRect& rect, const Scene& scene,
                      const std::string& resolution, const std::string& tracks,
                      PanelRequests& requests);
constexpr float kStatusHeight = 26;

}  // namespace attnscope
