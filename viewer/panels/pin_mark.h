#pragma once

#include "viewer/panels/widgets.h"

namespace attnscope {

/// A pin's mark: a ring about a place, and its number beside it. Registered as PANE/Pin NUMBER.
void draw_pin(const Ui& ui, const std::string& pane, float x, float y, int64_t number,
              ImU32 colour);

}  // namespace attnscope
