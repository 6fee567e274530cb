#pragma once

#include "viewer/panels/widgets.h"

namespace attnscope {

/// The button at the left of the toolbar, and its menu: *File, View, Panes, Copy*, with the key of
/// each item and a mark at what is on. Registered as Toolbar/Menu, its items, while it is open, as
/// GROUP/NAME. Esc closes it.
void draw_main_menu(const Ui& ui, const Scene& scene, PanelRequests& requests);
float main_menu_width(const Ui& ui);

}  // namespace attnscope
