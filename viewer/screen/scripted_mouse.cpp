#include "viewer/screen/scripted_mouse.h"

#include <imgui.h>

#include <cfloat>
#include <cstdlib>

namespace attnscope {

void ScriptedMouse::click(float x, float y) {
  // ImGui wants to see the mouse over an item before the button goes down.
  steps_.push_back({x, y});
  steps_.push_back({x, y, true});
  steps_.push_back({x, y, true});
  steps_.push_back({x, y});
  steps_.push_back({-FLT_MAX, -FLT_MAX});
}

void ScriptedMouse::drag(float x0, float y0, float x1, float y1, bool shift, bool ctrl) {
  constexpr int kMoves = 4;
  steps_.push_back({x0, y0, false, shift, ctrl});
  for (int i = 0; i <= kMoves; ++i) {
    const float share = static_cast<float>(i) / kMoves;
    steps_.push_back({x0 + (x1 - x0) * share, y0 + (y1 - y0) * share, true, shift, ctrl});
  }
  steps_.push_back({x1, y1, false, shift, ctrl});
  steps_.push_back({-FLT_MAX, -FLT_MAX});
}

void ScriptedMouse::wheel(float x, float y, int notches) {
  steps_.push_back({x, y});
  for (int i = 0; i < std::abs(notches); ++i) {
    steps_.push_back({x, y, false, false, false, notches > 0 ? 1.0f : -1.0f});
  }
  steps_.push_back({x, y});
  steps_.push_back({-FLT_MAX, -FLT_MAX});
}

void ScriptedMouse::feed() {
  const bool fresh = !steps_.empty();
  if (fresh) {
    last_ = steps_.front();
    steps_.pop_front();
  }
  const Step step = last_.value_or(Step{-FLT_MAX, -FLT_MAX});
  ImGuiIO& io = ImGui::GetIO();
#if IMGUI_VERSION_NUM >= 18700
  io.AddMousePosEvent(step.x, step.y);
  io.AddMouseButtonEvent(0, step.down);
  if (fresh && step.wheel != 0) io.AddMouseWheelEvent(0, step.wheel);
#else
  io.MousePos = {step.x, step.y};
  io.MouseDown[0] = step.down;
  io.MouseDown[1] = false;
  io.MouseWheel = fresh ? step.wheel : 0;
#endif
  // Beside what the keyboard holds: without one, nobody else lets go of them.
  if (step.shift || shift_) io.KeyShift = step.shift;
  if (step.ctrl || ctrl_) io.KeyCtrl = step.ctrl;
  shift_ = step.shift;
  ctrl_ = step.ctrl;
}

}  // namespace attnscope
