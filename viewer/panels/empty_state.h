#pragma once

#include <filesystem>

#include "viewer/panels/widgets.h"

namespace attnscope {

/// What the window shows while nothing is open: where to drop a capture, what was opened lately,
/// and commands to begin with.
void draw_empty_state(const Ui& ui, const ScreenRect& rect,
                      const std::vector<std::filesystem::path>& recent, PanelRequests& requests);

}  // namespace attnscope
