#pragma once

#include <filesystem>

#include "viewer/panels/widgets.h"

namespace attnscope {

/// What the window shows while nothing is open: where to drop a capture, what was opened lately,
/// and commands to begin with; below it what was just done, if anything.
void draw_empty_state(const Ui& ui, const ScreenRect& rect,
                      const std::vector<std::filesystem::path>& recent, const std::string& notice,
                      PanelRequests& requests);

}  // namespace attnscope
