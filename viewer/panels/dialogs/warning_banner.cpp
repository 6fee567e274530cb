#include "viewer/panels/dialogs/warning_banner.h"

#include "viewer/panels/widgets.h"

namespace attnscope {

void draw_warning_banner(const Ui& ui, const ScreenRect& rect, const Scene& scene,
                         PanelRequests& requests) {
  begin_pane(ui, "warning", rect);
  // A bar at the left edge, so that it is not told by the text's colour alone.
  ImGui::GetWindowDrawList()->AddRectFilled({rect.x0, rect.y0}, {rect.x0 + ui.px(4), rect.y1},
                                            ui.theme.problem);
  const std::string button = "Dismiss";
  const float width = text_size(ui.fonts.body, button).x + ui.px(24);
  const float left = rect.x0 + ui.px(12);
  const std::string text = fit_text(ui.fonts.body, scene.warning, rect.x1 - width - left);
  put_text(ui, ui.fonts.body, left, rect.y0 + (rect.height() - ui.fonts.body->FontSize) / 2,
           ui.theme.problem, text);
  ImGui::SetCursorScreenPos({left, rect.y0});
  ImGui::InvisibleButton("text", {rect.x1 - width - left, rect.height()});
  mark(ui, "Warning/Text");
  if (ImGui::IsItemHovered()) tooltip(scene.warning);
  ImGui::SetCursorScreenPos({rect.x1 - width, rect.y0 + ui.px(3)});
  if (tool_button(ui, "Warning/Dismiss", button, false,
                  "hide this until the capture is opened again")) {
    requests.dismiss_warning = true;
  }
  end_pane();
}

}  // namespace attnscope
