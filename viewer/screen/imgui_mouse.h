#pragma once

#include "viewer/screen/mouse_events.h"

namespace attnscope {

/// Tells ImGui, between its backend's NewFrame and its own, what the mouse did: the buttons, and
/// where it is, unless that is where it is now.
void give_imgui(const MouseEvents::State& mouse);

}  // namespace attnscope
