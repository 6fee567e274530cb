#pragma once

#include "viewer/panels/widgets.h"

namespace attnscope {

/// Shows an error with the file and the cause; everything else stays as it was. False once it was
/// closed.
bool draw_error(const Ui& ui, const ScreenRect& window, const std::string& title,
                const std::string& message, bool problem = true);

}  // namespace attnscope
