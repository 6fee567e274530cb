#include "viewer/panels/dialogs/warning_banner.h"

#include "viewer/panels/widgets.h"

namespace attnscope {
namespace {

/// A line of text and a button; gives whether that was clicked. Registered as PANE/Text and
/// PANE/BUTTON.
bool draw_banner(const Ui& ui, const std::string& pane, const ScreenRect& rect,
                 const std::string& text, ImU32 colour, const std::string& button,
                 const std::string& hint) {
  begin_pane(ui, pane.c_str(), rect);
  // A bar at the left edge, so that it is not told by the text's colour alone.
  ImGui::GetWindowDrawList()->AddRectFilled({rect.x0, rect.y0}, {rect.x0 + ui.px(4), rect.y1},
                                            colour);
  const float width = text_size(ui.fonts.body, button).x + ui.px(24);
  const ScreenRect room{rect.x0 + ui.px(12), rect.y0, rect.x1 - width, rect.y1};
  put_fitting(ui, ui.fonts.body, room.x0, rect.y0 + (rect.height() - ui.fonts.body->FontSize) / 2,
              room.width(), colour, text);
  ui.labels.add(pane + "/Text", room);
  ImGui::SetCursorScreenPos({rect.x1 - width, rect.y0 + ui.px(3)});
  const bool clicked = tool_button(ui, pane + "/" + button, button, false, hint);
  end_pane();
  return clicked;
}

}  // namespace

void draw_warning_banner(const Ui& ui, const ScreenRect& rect, const Scene& scene,
                         PanelRequests& requests) {
  if (draw_banner(ui, "Warning", rect, scene.warning, ui.theme.problem, "Dismiss",
                  "hide this until the capture is opened again")) {
    requests.dismiss_warning = true;
  }
}

void draw_sample_banner(const Ui& ui, const ScreenRect& rect, PanelRequests& requests) {
  if (draw_banner(ui, "Sample", rect,
                  "a synthetic capture, made by formulas: it goes when the window is closed",
                  ui.theme.query, "Save as\u2026", "keeps it as a capture")) {
    requests.choose_sample_place = true;
  }
}

}  // namespace attnscope
