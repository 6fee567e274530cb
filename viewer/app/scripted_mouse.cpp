#include "viewer/app/scripted_mouse.h"

#include <imgui.h>

#include <cfloat>

namespace attnscope {

void ScriptedMouse::click(float x, float y) {
  // ImGui wants to see the mouse over an item before the button goes down.
  steps_.push_back({x, y, false});
  steps_.push_back({x, y, true});
  steps_.push_back({x, y, true});
  steps_.push_back({x, y, false});
  steps_.push_back({-FLT_MAX, -FLT_MAX, false});
}

void ScriptedMouse::feed() {
  if (!steps_.empty()) {
    last_ = steps_.front();
    steps_.pop_front();
  }
  const Step step = last_.value_or(Step{-FLT_MAX, -FLT_MAX, false});
  ImGuiIO& io = ImGui::GetIO();
#if IMGUI_VERSION_NUM >= 18700
  io.AddMousePosEvent(step.x, step.y);
  io.AddMouseButtonEvent(0, step.down);
#else
  io.MousePos = {step.x, step.y};
  io.MouseDown[0] = step.down;
  io.MouseDown[1] = false;
  io.MouseWheel = 0;
#endif
}

}  // namespace attnscope
