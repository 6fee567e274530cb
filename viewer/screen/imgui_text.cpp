#include "viewer/screen/imgui_text.h"

#include <imgui.h>
#include <imgui_internal.h>

namespace attnscope {

bool takes_text() {
  const ImGuiContext& g = *ImGui::GetCurrentContext();
  return g.ActiveId != 0 && g.ActiveIdIsAlive == g.ActiveId && g.InputTextState.ID == g.ActiveId;
}

}  // namespace attnscope
