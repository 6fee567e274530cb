#include "viewer/panels/row/line_controls.h"

#include "viewer/view/row/words_view.h"
#include "viewer/view/view_actions.h"

namespace attnscope {
namespace {

constexpr const char* kReleaseSign = "\u00d7";

/// × lets go of what is picked: of words first, then of the query.
void release_button(const Ui& ui, const std::string& pane, const Scene& scene,
                    PanelRequests& requests) {
  const bool words = !scene.state.words.chosen.empty();
  const char* const hint = words ? "the query's film again (Esc)" : "follow the mouse again (Esc)";
  if (!tool_button(ui, pane + "/Release", kReleaseSign, false, hint)) return;
  if (words) {
    WordsLook look = scene.state.words;
    look.chosen.clear();
    requests.act(action::SetWords{look});
  } else {
    requests.act(action::DropQuery{});
  }
}

}  // namespace

float draw_chosen_line(const Ui& ui, const std::string& pane, const ScreenRect& room,
                       const std::string& what, const std::string& how, const Scene& scene,
                       PanelRequests& requests) {
  ImFont* const small = ui.fonts.secondary;
  const bool picked = !scene.state.words.chosen.empty() || scene.state.query.has_value();
  const float button = picked ? text_size(small, kReleaseSign).x + ui.px(8) : 0.0f;
  const ImU32 colour = scene.line->request.reverse ? ui.theme.key : ui.theme.query;
  float x = room.x0 + put_fitting(ui, small, room.x0, room.y0, room.width() - ui.px(6) - button,
                                  colour, what);
  if (picked) {
    ImGui::PushFont(small);
    ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(ui.px(4), ui.px(1)));
    ImGui::SetCursorScreenPos({x + ui.px(6), room.y0 - ui.px(1)});
    release_button(ui, pane, scene, requests);
    ImGui::PopStyleVar();
    ImGui::PopFont();
    x += ui.px(6) + button;
  }
  x += ui.px(12);
  return x + put_fitting(ui, small, x, room.y0, room.x1 - x, ui.theme.secondary, how);
}

void draw_line_controls(const Ui& ui, const std::string& pane, const ScreenRect& rect, float from,
                        const Scene& scene, PanelRequests& requests) {
  const std::vector<std::string> ways{"Attends to", "Attended by"};
  float width = ui.px(17 * 2);
  for (const std::string& word : ways) width += text_size(ui.fonts.secondary, word).x;
  const float x = rect.x1 - ui.px(8) - width;
  if (x < from) return;
  ImGui::PushFont(ui.fonts.secondary);
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(ui.px(8), ui.px(2)));
  ImGui::SetCursorScreenPos({x, rect.y0 + ui.px(4)});
  const bool words = !scene.state.words.chosen.empty();
  const int taken = segmented(ui, pane, ways, film_of_columns(scene.state) ? 1 : 0,
                              "where the token looks, or which tokens look at it (R)");
  if (taken >= 0) requests.act(action::SetReverse{(taken == 1) != words});
  ImGui::PopStyleVar();
  ImGui::PopFont();
}

}  // namespace attnscope
