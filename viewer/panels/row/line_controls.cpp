#include "viewer/panels/row/line_controls.h"

#include "viewer/view/row/words_view.h"
#include "viewer/view/view_actions.h"

namespace attnscope {

void draw_line_controls(const Ui& ui, const std::string& pane, const ScreenRect& rect, float from,
                        const Scene& scene, PanelRequests& requests) {
  const std::vector<std::string> ways{"Attends to", "Attended by"};
  float width = ui.px(17 * 2);
  for (const std::string& word : ways) width += text_size(ui.fonts.secondary, word).x;
  const bool words = !scene.state.words.chosen.empty();
  bool picked = words || scene.state.query.has_value();
  const float release = text_size(ui.fonts.secondary, "Release").x + ui.px(24);
  // Where there is no room, Esc and the right mouse button release the query too.
  if (rect.x1 - ui.px(8) - width - release < from) picked = false;
  if (picked) width += release;
  const float x = rect.x1 - ui.px(8) - width;
  if (x < from) return;
  ImGui::PushFont(ui.fonts.secondary);
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(ui.px(8), ui.px(2)));
  ImGui::SetCursorScreenPos({x, rect.y0 + ui.px(4)});
  if (picked) {
    const char* const hint = words ? "the query's film again (Esc)" : "follow the mouse again (Q)";
    if (tool_button(ui, pane + "/Release", "Release", false, hint)) {
      if (words) {
        WordsLook look = scene.state.words;
        look.chosen.clear();
        requests.act(action::SetWords{look});
      } else {
        requests.act(action::DropQuery{});
      }
    }
    ImGui::SameLine(0, ui.px(8));
  }
  const int taken = segmented(ui, pane, ways, film_of_columns(scene.state) ? 1 : 0,
                              "where the token looks, or which tokens look at it (R)");
  if (taken >= 0) requests.act(action::SetReverse{(taken == 1) != words});
  ImGui::PopStyleVar();
  ImGui::PopFont();
}

}  // namespace attnscope
