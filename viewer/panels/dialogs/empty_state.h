#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "viewer/panels/widgets.h"
#include "viewer/session/recent_files.h"

namespace attnscope {

/// What a window without a capture tells.
struct EmptyState {
  std::vector<RecentFile> recent;  ///< the latest first
  std::filesystem::path awaited;   ///< whose first call is waited for; empty: nothing is
  std::string notice;              ///< what was just done; empty: nothing
  bool has_sample = false;         ///< a sample can be had
};

/// Draws the window while nothing is open: what is waited for, or where to drop a capture; what was
/// opened lately, and commands to begin with.
void draw_empty_state(const Ui& ui, const ScreenRect& rect, const EmptyState& state,
                      PanelRequests& requests);

}  // namespace attnscope
