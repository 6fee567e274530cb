#include "viewer/panels/dialogs/help_overlay.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "viewer/commands/commands.h"

namespace attnscope {
namespace {

/// Of the longest names of a key or a gesture.
constexpr float kKeysWidth = 192;
/// Above the lines and below them.
constexpr float kTitle = 52, kFoot = 12;
constexpr float kLeastLine = 16, kMostLine = 24;

struct HelpLine {
  std::string keys, text;  ///< no keys: a heading
};

/// Commands that are one movement in several directions, or back and forth: a line for all.
struct HelpFamily {
  std::vector<CommandId> commands;
  const char* keys;
  const char* text;
};

const std::vector<HelpFamily>& help_families() {
  using enum CommandId;
  static const std::vector<HelpFamily> kFamilies{
      {{pan_up, pan_left, pan_down, pan_right}, "W A S D  arrows", "move: queries, keys"},
      {{zoom_in, zoom_out}, "+  -", "zoom in, out"},
      {{previous_head, next_head}, "[  ]", "previous, next head"},
      {{previous_layer, next_layer}, "{  }", "previous, next layer"},
      {{previous_step, next_step}, ",  .", "previous, next step"},
      {{go_to_pin}, "1 \u2026 8", "go to the pin of this number"},
      {{query_left, query_right, query_up, query_down},
       "Shift+arrows",
       "pick the token beside, above or below"},
      {{query_earlier, query_later}, "PageUp  PageDown", "pick it a latent frame earlier, later"},
      {{smaller_entry, larger_entry},
       "J  Shift+J",
       "the row's largest entry, the next smaller ones, back"}};
  return kFamilies;
}

const HelpFamily* family_of(CommandId command) {
  for (const HelpFamily& family : help_families()) {
    const auto& all = family.commands;
    if (std::find(all.begin(), all.end(), command) != all.end()) return &family;
  }
  return nullptr;
}

std::vector<HelpLine> help_lines() {
  std::vector<HelpLine> lines;
  std::string_view group;
  for (const auto& command : commands()) {
    if (!command.here || command.chords.empty()) continue;
    if (command.group != group) {
      group = command.group;
      lines.push_back({"", std::string(group)});
    }
    if (const HelpFamily* const family = family_of(command.id)) {
      if (family->commands.front() == command.id) lines.push_back({family->keys, family->text});
      continue;
    }
    std::string keys;
    for (const std::string_view chord : command.chords) {
      keys += (keys.empty() ? "" : "  ") + std::string(chord);
    }
    lines.push_back({keys, std::string(command.help)});
  }
  const auto add = [&](const char* heading, std::span<const PaneKeys> all) {
    lines.push_back({"", heading});
    for (const auto& [keys, help] : all) lines.push_back({std::string(keys), std::string(help)});
  };
  add("Map", map_keys());
  add("Over Heads", heads_keys());
  add("Mouse", mouse_keys());
  return lines;
}

/// Where the second column begins: at the heading that makes both as equal as can be.
size_t second_column(const std::vector<HelpLine>& lines) {
  size_t best = lines.size();
  for (size_t i = 1; i < lines.size(); ++i) {
    if (!lines[i].keys.empty()) continue;
    if (std::max(i, lines.size() - i) < std::max(best, lines.size() - best)) best = i;
  }
  return best;
}

/// Lines from `x`, `y` on, in a column of a width.
void draw_lines(const Ui& ui, ImVec2 at, float line, float width, std::span<const HelpLine> lines) {
  for (const HelpLine& each : lines) {
    if (each.keys.empty()) {
      put_text(ui, ui.fonts.body, at.x, at.y, ui.theme.text, each.text);
    } else {
      const float taken = put_fitting(ui, ui.fonts.mono, at.x, at.y + ui.px(1), ui.px(256),
                                      ui.theme.key, each.keys);
      // A line of many keys moves its own words alone.
      const float words = at.x + std::max(ui.px(kKeysWidth), taken + ui.px(16));
      put_fitting(ui, ui.fonts.secondary, words, at.y + ui.px(1), at.x + width - ui.px(8) - words,
                  ui.theme.secondary, each.text);
    }
    at.y += line;
  }
}

}  // namespace

bool draw_help(const Ui& ui, const ScreenRect& window) {
  const std::vector<HelpLine> lines = help_lines();
  const int columns = window.width() >= ui.px(960) ? 2 : 1;
  const size_t second = columns == 2 ? second_column(lines) : lines.size();
  const size_t longest = std::max(second, lines.size() - second);
  const float width = std::min(window.width() - ui.px(32), ui.px(columns == 2 ? 1320.0f : 600.0f));
  // Lines move together where the window is low; where they cannot, they scroll below the title.
  const auto rows = static_cast<float>(longest);
  const float most = window.height() - ui.px(32);
  const float line = std::clamp(std::floor((most - ui.px(kTitle + kFoot)) / rows),
                                ui.px(kLeastLine), ui.px(kMostLine));
  const float height = std::min(most, rows * line + ui.px(kTitle + kFoot));
  const ImVec2 at{(window.x0 + window.x1 - width) / 2, (window.y0 + window.y1 - height) / 2};
  ImGui::SetNextWindowPos(at);
  ImGui::SetNextWindowSize({width, height});
  ImGui::PushStyleColor(ImGuiCol_WindowBg, to_vec4(ui.theme.pane));
  ImGui::PushStyleVar(ImGuiStyleVar_WindowBorderSize, ui.px(1));
  ImGui::Begin("Help", nullptr,
               ImGuiWindowFlags_NoTitleBar | ImGuiWindowFlags_NoResize | ImGuiWindowFlags_NoMove |
                   ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoScrollbar);
  if (ImGui::IsWindowAppearing()) ImGui::SetWindowFocus();
  const bool appears = ImGui::IsWindowAppearing();
  put_text(ui, ui.fonts.title, at.x + ui.px(20), at.y + ui.px(16), ui.theme.text, "Keys");
  put_text(ui, ui.fonts.secondary, at.x + width - ui.px(20), at.y + ui.px(20), ui.theme.secondary,
           "Esc or a click closes", Align::right);
  ImGui::SetCursorScreenPos({at.x, at.y + ui.px(kTitle)});
  ImGui::BeginChild("keys", {width - ui.px(2), height - ui.px(kTitle + kFoot)}, false,
                    ImGuiWindowFlags_NoNav);
  const ImVec2 origin = ImGui::GetCursorScreenPos();
  const float column = (width - ui.px(40)) / static_cast<float>(columns);
  const std::span<const HelpLine> all = lines;
  const float x = at.x + ui.px(20);
  draw_lines(ui, {x, origin.y}, line, column, all.first(second));
  draw_lines(ui, {x + column, origin.y}, line, column, all.subspan(second));
  ImGui::Dummy({1, rows * line});
  ImGui::EndChild();
  // A press on the scroll bar scrolls.
  const bool clicked = ImGui::IsMouseClicked(0) && !appears && !ImGui::IsAnyItemActive();
  ImGui::End();
  ImGui::PopStyleVar();
  ImGui::PopStyleColor();
  ui.labels.add("Help/Panel", {at.x, at.y, at.x + width, at.y + height});
  return !clicked;
}

}  // namespace attnscope
