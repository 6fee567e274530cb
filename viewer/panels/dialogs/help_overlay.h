#pragma once

#include "viewer/panels/widgets.h"

namespace attnscope {

/// All keys of the window, over everything; false once it was closed.
bool draw_help(const Ui& ui, const ScreenRect& window);

}  // namespace attnscope
