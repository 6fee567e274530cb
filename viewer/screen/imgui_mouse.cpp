#include "viewer/screen/imgui_mouse.h"

#include <imgui.h>

#include <algorithm>
#include <limits>

namespace attnscope {

void give_imgui(const MouseEvents::State& mouse) {
  ImGuiIO& io = ImGui::GetIO();
  std::copy(mouse.down.begin(), mouse.down.end(), io.MouseDown);
  if (mouse.at) {
    io.MousePos = {static_cast<float>((*mouse.at)[0]), static_cast<float>((*mouse.at)[1])};
  }
  // By its frames' times ImGui would take two clicks in slow frames for single ones.
  io.MouseDoubleClickTime = mouse.repeated ? std::numeric_limits<float>::max() : 0;
}

}  // namespace attnscope
