#include "viewer/panels/dialogs/help_overlay.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "viewer/commands/commands.h"

namespace attnscope {
namespace {

/// Of the longest names of a key or a gesture.
constexpr float kKeysWidth = 192;

struct HelpLine {
  std::string keys, text;  ///< no keys: a heading
};

std::vector<HelpLine> help_lines() {
  std::vector<HelpLine> lines;
  std::string_view group;
  for (const auto& command : commands()) {
    if (!command.here || command.chords.empty()) continue;
    if (command.group != group) {
      group = command.group;
      lines.push_back({"", std::string(group)});
    }
    std::string keys;
    for (const std::string_view chord : command.chords) {
      keys += (keys.empty() ? "" : "  ") + std::string(chord);
    }
    lines.push_back({keys, std::string(command.help)});
  }
  lines.push_back({"", "Map"});
  for (const auto& [keys, help] : map_keys()) {
    lines.push_back({std::string(keys), std::string(help)});
  }
  lines.push_back({"", "Over Heads"});
  for (const auto& [keys, help] : heads_keys()) {
    lines.push_back({std::string(keys), std::string(help)});
  }
  lines.push_back({"", "Mouse"});
  lines.push_back({"wheel", "zoom at the cursor"});
  lines.push_back({"wheel on a ruler", "zoom its side"});
  lines.push_back({"drag", "move the map, a splitter, the colours' ends"});
  lines.push_back({"click", "pick the token under the mouse as query"});
  lines.push_back({"right click", "release the query"});
  lines.push_back({"double click", "zoom in; on a pane's header: maximise"});
  return lines;
}

}  // namespace

bool draw_help(const Ui& ui, const ScreenRect& window) {
  const std::vector<HelpLine> lines = help_lines();
  const int columns = window.width() >= ui.px(960) ? 2 : 1;
  const size_t per_column =
      (lines.size() + static_cast<size_t>(columns) - 1) / static_cast<size_t>(columns);
  const float width = std::min(window.width() - ui.px(32), ui.px(columns == 2 ? 1320.0f : 600.0f));
  // Lines move together where the window is low; where they cannot, they scroll.
  const auto rows = static_cast<float>(per_column);
  const float most = window.height() - ui.px(32);
  const float line = std::clamp(std::floor((most - ui.px(72)) / rows), ui.px(16), ui.px(24));
  const float height = std::min(most, rows * line + ui.px(72));
  const ImVec2 at{(window.x0 + window.x1 - width) / 2, (window.y0 + window.y1 - height) / 2};
  ImGui::SetNextWindowPos(at);
  ImGui::SetNextWindowSize({width, height});
  ImGui::PushStyleColor(ImGuiCol_WindowBg, to_vec4(ui.theme.pane));
  ImGui::PushStyleVar(ImGuiStyleVar_WindowBorderSize, ui.px(1));
  ImGui::Begin("Help", nullptr,
               ImGuiWindowFlags_NoTitleBar | ImGuiWindowFlags_NoResize | ImGuiWindowFlags_NoMove |
                   ImGuiWindowFlags_NoSavedSettings);
  if (ImGui::IsWindowAppearing()) ImGui::SetWindowFocus();
  const float top = at.y - ImGui::GetScrollY();
  ImGui::SetCursorPos({0, rows * line + ui.px(60)});
  ImGui::Dummy({1, 1});
  put_text(ui, ui.fonts.title, at.x + ui.px(20), top + ui.px(16), ui.theme.text, "Keys");
  put_text(ui, ui.fonts.secondary, at.x + width - ui.px(20), top + ui.px(20), ui.theme.secondary,
           "Esc or a click closes", Align::right);
  const float column = (width - ui.px(40)) / static_cast<float>(columns);
  for (size_t i = 0; i < lines.size(); ++i) {
    const float x = at.x + ui.px(20) + column * static_cast<float>(i / per_column);
    const float y = top + ui.px(56) + line * static_cast<float>(i % per_column);
    if (lines[i].keys.empty()) {
      put_text(ui, ui.fonts.body, x, y, ui.theme.text, lines[i].text);
      continue;
    }
    const float taken =
        put_fitting(ui, ui.fonts.mono, x, y + ui.px(1), ui.px(256), ui.theme.key, lines[i].keys);
    // A line of many keys moves its own words alone.
    const float words = x + std::max(ui.px(kKeysWidth), taken + ui.px(16));
    put_fitting(ui, ui.fonts.secondary, words, y + ui.px(1), x + column - ui.px(8) - words,
                ui.theme.secondary, lines[i].text);
  }
  const bool outside = ImGui::IsMouseClicked(0) && !ImGui::IsWindowAppearing();
  ImGui::End();
  ImGui::PopStyleVar();
  ImGui::PopStyleColor();
  ui.labels.add("Help/Panel", {at.x, at.y, at.x + width, at.y + height});
  return !outside;
}

}  // namespace attnscope
