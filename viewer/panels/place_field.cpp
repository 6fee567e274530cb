#include "viewer/panels/place_field.h"

#include <algorithm>
#include <utility>

namespace attnscope {

void PlaceField::draw(const Ui& ui, float width, const Scene& scene, PanelRequests& requests) {
  if (asked_ && scene.place_problem.empty()) asked_ = typing_ = false;
  const bool refused = asked_ && !scene.place_problem.empty();
  if (!typing_) {
    text_.fill(0);
    std::copy_n(scene.place.begin(), std::min(scene.place.size(), text_.size() - 1), text_.begin());
  }
  // A field that Enter has closed opens again.
  if (std::exchange(reopens_, false) && refused) {
    ImGui::SetKeyboardFocusHere();
    requests.draw_again = true;
  }
  const std::string before = text_.data();
  const bool entered = text_field(
      ui, "Toolbar/Place", "L2 H0 \u00b7 q 3,5,6 \u00b7 448\u2013592", width, text_.data(),
      text_.size(), ImGuiInputTextFlags_EnterReturnsTrue | ImGuiInputTextFlags_AutoSelectAll);
  const ScreenRect rect = item_rect();
  if (ImGui::IsItemHovered() && !typing_) {
    tooltip(scene.place +
            "\nwhere one is, to be copied; a head, a token, a part of the map, a copied command "
            "(Ctrl+L) or entry (Ctrl+C) that is typed or pasted here is gone to by Enter");
  }
  if (entered) {
    asked_ = typing_ = reopens_ = true;
    requests.place = std::string(text_.data());
  } else if (ImGui::IsItemDeactivated()) {
    asked_ = typing_ = false;
  } else if (ImGui::IsItemActive()) {
    typing_ = true;
    if (before != text_.data()) asked_ = false;
  }
  if (!refused) return;
  const float wide = std::max(width, ui.px(280));
  const float height = wrapped_height(ui.fonts.secondary, scene.place_problem, wide - ui.px(16));
  const float x = std::min(rect.x0, ImGui::GetIO().DisplaySize.x - wide - ui.px(8));
  ImGui::SetNextWindowPos({x, rect.y1 + ui.px(4)});
  ImGui::SetNextWindowSize({wide, height + ui.px(12)});
  ImGui::BeginTooltip();
  put_wrapped(ui, ui.fonts.secondary, x + ui.px(8), rect.y1 + ui.px(10), wide - ui.px(16),
              ui.theme.problem, scene.place_problem);
  ImGui::EndTooltip();
}

}  // namespace attnscope
