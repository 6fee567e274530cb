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
  const ScreenRect text{left, rect.y0, rect.x1 - width, rect.y1};
  put_fitting(ui, ui.fonts.body, left, rect.y0 + (rect.height() - ui.fonts.body->FontSize) / 2,
              text.width(), ui.theme.problem, scene.warning);
  ui.labels.add("Warning/Text", text);
  ImGui::SetCursorScreenPos({rect.x1 - width, rect.y0 + ui.px(3)});
  if (tool_button(ui, "Warning/Dismiss", button, false,
                  "hide this until the capture is opened again")) {
    requests.dismiss_warning = true;
  }
  end_pane();
}

}  // namespace attnscope
