#pragma once

#include "viewer/panels/scene.h"

namespace attnscope {

/// What the button of the menu says.
inline constexpr const char* kPaneMenuWord = "Panes";

/// A button whose list shows and hides panes, and does what else has a key and no button.
/// Registered as Toolbar/Panes, its items, while it is open, as Panes/NAME. Esc closes it.
void draw_pane_menu(const Ui& ui, const Scene& scene, PanelRequests& requests);

}  // namespace attnscope
