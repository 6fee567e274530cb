#pragma once

#include "viewer/panels/widgets.h"

namespace attnscope {

/// At the right end of a pane's header, from `from` on where there is room: which way the line
/// goes, and letting go of what is picked. Registered as PANE/NAME.
void draw_line_controls(const Ui& ui, const std::string& pane, const ScreenRect& rect, float from,
                        const Scene& scene, PanelRequests& requests);

}  // namespace attnscope
