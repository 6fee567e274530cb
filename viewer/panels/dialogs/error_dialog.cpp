#include "viewer/panels/dialogs/error_dialog.h"

#include <algorithm>

namespace attnscope {

bool draw_error(const Ui& ui, const ScreenRect& window, const std::string& title,
                const std::string& message, bool problem) {
  const float width = std::min(window.width() - ui.px(32), ui.px(560));
  ImGui::PushFont(ui.fonts.body);
  const float text_height =
      ImGui::CalcTextSize(message.c_str(), nullptr, false, width - ui.px(48)).y;
  ImGui::PopFont();
  const float height = std::min(window.height() - ui.px(32), text_height + ui.px(120));
  const ImVec2 at{(window.x0 + window.x1 - width) / 2, (window.y0 + window.y1 - height) / 2};
  ImGui::SetNextWindowPos(at);
  ImGui::SetNextWindowSize({width, height});
  ImGui::PushStyleColor(ImGuiCol_WindowBg, to_vec4(ui.theme.pane));
  ImGui::PushStyleVar(ImGuiStyleVar_WindowBorderSize, ui.px(1));
  ImGui::Begin("Error", nullptr,
               ImGuiWindowFlags_NoTitleBar | ImGuiWindowFlags_NoResize | ImGuiWindowFlags_NoMove |
                   ImGuiWindowFlags_NoSavedSettings);
  if (ImGui::IsWindowAppearing()) ImGui::SetWindowFocus();
  put_text(ui, ui.fonts.title, at.x + ui.px(20), at.y + ui.px(16),
           problem ? ui.theme.problem : ui.theme.text, title);
  ImGui::SetCursorScreenPos({at.x + ui.px(20), at.y + ui.px(52)});
  // A text that is longer than the window scrolls.
  ImGui::BeginChild("text", {width - ui.px(40), height - ui.px(52 + 56)}, false,
                    ImGuiWindowFlags_NoNav);
  ImGui::PushTextWrapPos(0);
  ImGui::TextUnformatted(message.c_str());
  ImGui::PopTextWrapPos();
  ImGui::EndChild();
  const float button = text_size(ui.fonts.body, "Close").x + ui.px(16);
  ImGui::SetCursorScreenPos({at.x + width - button - ui.px(20), at.y + height - ui.px(44)});
  const bool closed = tool_button(ui, "Error/Close", "Close", true, "");
  const float copy = text_size(ui.fonts.body, "Copy").x + ui.px(16);
  ImGui::SetCursorScreenPos({at.x + width - button - copy - ui.px(28), at.y + height - ui.px(44)});
  if (tool_button(ui, "Error/Copy", "Copy", false, "the text, to the clipboard")) {
    ImGui::SetClipboardText(message.c_str());
  }
  ImGui::End();
  ImGui::PopStyleVar();
  ImGui::PopStyleColor();
  return !closed;
}

}  // namespace attnscope
