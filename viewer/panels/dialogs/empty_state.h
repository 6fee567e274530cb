#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "viewer/panels/widgets.h"
#include "viewer/session/recent_files.h"

namespace attnscope {

/// A capture that was opened, with the texture of a small picture of its map.
struct RecentEntry {
  RecentFile file;
  unsigned picture = 0;       ///< its first row is the upper one; 0: there is none
  int width = 0, height = 0;  ///< of the picture
};

/// What a window without a capture tells.
struct EmptyState {
  std::vector<RecentEntry> recent;  ///< the latest first
  std::filesystem::path awaited;    ///< whose first call is waited for; empty: nothing is
  std::string notice;               ///< what was just done; empty: nothing
  bool has_sample = false;          ///< a sample can be had
};

/// Draws the window while nothing is open: what is waited for, or where to drop a capture; what was
/// opened lately, and commands to begin with.
void draw_empty_state(const Ui& ui, const ScreenRect& rect, const EmptyState& state,
                      PanelRequests& requests);

}  // namespace attnscope
