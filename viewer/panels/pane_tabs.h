#pragma once

#include "viewer/panels/widgets.h"

namespace attnscope {

constexpr float kTabsHeight = 26;

/// The panes that stand below the query in one place, by name, with the one that is shown marked; a
/// click shows another. Those that the head cannot have are left out. Takes the top of `rect`; each
/// is registered as Tabs/NAME.
void draw_pane_tabs(const Ui& ui, const ScreenRect& rect, const Scene& scene,
                    PanelRequests& requests);

}  // namespace attnscope
