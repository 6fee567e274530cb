#pragma once

#include <filesystem>

#include "viewer/panels/widgets.h"

namespace attnscope {

/// Draws the window while nothing is open: where to drop a capture, what was opened lately, and
/// commands to begin with; below it the notice of what was just done, if any.
void draw_empty_state(const Ui& ui, const ScreenRect& rect,
                      const std::vector<std::filesystem::path>& recent, const std::string& notice,
                      PanelRequests& requests);

}  // namespace attnscope
