#include "viewer/panels/main_menu.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "viewer/panels/timeline_panel.h"
#include "viewer/settings/settings.h"
#include "viewer/view/pin_places.h"

namespace attnscope {
namespace {

constexpr const char* kMainMenu = "main menu";
constexpr float kItemHeight = 24, kItemWidth = 256, kGroupGap = 8;

struct MenuItem {
  CommandId command;
  const char* name;
  /// True where the pane or setting of the item is on; empty: the item switches nothing.
  std::function<bool(const Scene&)> is_on = {};
};

struct MenuGroup {
  const char* name;
  std::vector<MenuItem> items;
};

std::function<bool(const Scene&)> is_below(ViewPane pane) {
  return [pane](const Scene& scene) { return pane_below(scene.chosen) == pane; };
}

std::function<bool(const Scene&)> is_switched_on(const char* word) {
  return [word](const Scene& scene) { return is_setting_on(word, scene.chosen); };
}

const std::vector<MenuGroup>& menu_groups() {
  using enum CommandId;
  static const std::vector<MenuGroup> kGroups{
      {"File",
       {{open, "Open\u2026"},
        {open_other, "Open side B\u2026"},
        {save_session, "Save session"},
        {picture, "Picture"},
        {figure, "Page of the map"},
        {save_heads, "List of heads"},
        {messages, "Messages"},
        {help, "Keys"}}},
      {"View",
       {{back, "Undo"},
        {forward, "Redo"},
        {palette, "Search\u2026"},
        {fit, "Whole map"},
        {frame_block, "Frames in the middle"},
        {next_quadrant, "Text and video"},
        {toggle_equal_axes, "Equal axes", [](const Scene& s) { return s.chosen.equal_axes; }},
        {flip_order, "Order before"},
        {next_row_track, "Numbers of rows",
         [](const Scene& s) { return s.chosen.tracks.rows != RowTrack::off; }},
        {next_key_track, "Mass of keys",
         [](const Scene& s) { return s.chosen.tracks.keys != KeyTrack::off; }},
        {smaller_entry, "Next smaller entry"},
        {larger_entry, "Next larger entry"}}},
      {"Panes",
       {{toggle_atlas, "Heads", is_switched_on("atlas")},
        {toggle_words, "Words", is_switched_on("words")},
        {toggle_timeline, "Steps", [](const Scene& s) { return TimelinePanel::is_seen(s); }},
        {toggle_volume, "Volume", is_switched_on("volume")},
        {toggle_histogram, "Histogram", is_below(ViewPane::histogram)},
        {toggle_frames, "Frames", is_below(ViewPane::frames)},
        {toggle_mask, "Mask", is_below(ViewPane::mask)}}},
      {"Copy",
       {{copy_view, "View command"},
        {export_view, "Export command"},
        {copy_stats, "Stats command"},
        {copy_heads, "Selected heads"}}}};
  return kGroups;
}

/// A line of the menu, `width` wide: a mark where it is on, its name, its key.
bool menu_line(const Ui& ui, const std::string& label, const std::string& name,
               const std::string& chord, const std::string& about, bool on, float width) {
  ImGui::PushID(label.c_str());
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const bool clicked = ImGui::InvisibleButton("item", {width, ui.px(kItemHeight)});
  ImGui::PopID();
  mark(ui, label);
  const ScreenRect rect = item_rect();
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  if (ImGui::IsItemHovered()) {
    draw.AddRectFilled({rect.x0, rect.y0}, {rect.x1, rect.y1}, ui.theme.hovered, ui.px(3));
    tooltip(about);
  }
  const float middle = (rect.y0 + rect.y1) / 2;
  if (on) draw.AddCircleFilled({at.x + ui.px(10), middle}, ui.px(3), ui.theme.text);
  const float keys = text_size(ui.fonts.mono, chord).x + ui.px(16);
  put_fitting(ui, ui.fonts.body, at.x + ui.px(22), middle - ui.fonts.body->FontSize / 2,
              width - keys - ui.px(22), ui.theme.text, name);
  put_text(ui, ui.fonts.mono, rect.x1 - ui.px(8), middle - ui.fonts.mono->FontSize / 2,
           ui.theme.secondary, chord, Align::right);
  return clicked;
}

/// The pins that are kept: a click goes there, one on the cross lets it go.
void pin_lines(const Ui& ui, const Scene& scene, PanelRequests& requests) {
  for (int64_t number = 1; number <= kPins; ++number) {
    if (!scene.chosen.pins.at(number)) continue;
    const float cross = ui.px(kItemHeight);
    if (menu_line(ui, fmt::format("View/Pin {}", number), fmt::format("Pin {}", number),
                  fmt::format("{}", number), "go to this entry", false,
                  ui.px(kItemWidth) - cross)) {
      requests.act(go_to_pin(scene.chosen, scene.call, number));
      ImGui::CloseCurrentPopup();
    }
    ImGui::SameLine(0, 0);
    if (menu_line(ui, fmt::format("View/Unpin {}", number), "", "\u00d7", "let this pin go", false,
                  cross)) {
      requests.act(action::SetPin{number, {}});
    }
  }
}

void draw_group(const Ui& ui, const MenuGroup& group, const Scene& scene, PanelRequests& requests) {
  ImGui::BeginGroup();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImGui::Dummy({ui.px(kItemWidth), ui.px(kItemHeight)});
  put_text(ui, ui.fonts.title, at.x + ui.px(8),
           at.y + (ui.px(kItemHeight) - ui.fonts.title->FontSize) / 2, ui.theme.secondary,
           group.name);
  for (const MenuItem& item : group.items) {
    const ViewCommand& command = command_of(item.command);
    if (!command.here) continue;
    if (menu_line(ui, std::string(group.name) + "/" + item.name, item.name,
                  chord_text(parse_chord(command.chords.front())), std::string(command.help),
                  item.is_on && item.is_on(scene), ui.px(kItemWidth))) {
      requests.command = item.command;
      ImGui::CloseCurrentPopup();
    }
  }
  if (&group == &menu_groups()[1]) pin_lines(ui, scene, requests);
  ImGui::EndGroup();
}

}  // namespace

float main_menu_width(const Ui& ui) { return ui.px(32); }

void draw_main_menu(const Ui& ui, const Scene& scene, PanelRequests& requests) {
  const ScreenRect at{ImGui::GetCursorScreenPos().x, ImGui::GetCursorScreenPos().y, 0, 0};
  const float height = ImGui::GetFrameHeight(), width = main_menu_width(ui);
  const bool clicked = ImGui::InvisibleButton("menu", {width, height});
  mark(ui, "Toolbar/Menu");
  const bool bright = ImGui::IsItemHovered() || ImGui::IsPopupOpen(kMainMenu);
  if (ImGui::IsItemHovered()) tooltip("files, views, panes, what can be copied");
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  draw.AddRectFilled({at.x0, at.y0}, {at.x0 + width, at.y0 + height},
                     bright ? ui.theme.hovered : ui.theme.raised, ui.px(3));
  for (int line = -1; line <= 1; ++line) {
    const float y = std::round(at.y0 + height / 2 + ui.px(5) * static_cast<float>(line));
    draw.AddRectFilled({at.x0 + ui.px(9), y}, {at.x0 + width - ui.px(9), y + ui.px(2)},
                       bright ? ui.theme.text : ui.theme.secondary);
  }
  if (clicked) ImGui::OpenPopup(kMainMenu);
  ImGui::SetNextWindowPos({at.x0, at.y0 + height + ui.px(4)});
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(ui.px(6), ui.px(6)));
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(0, 0));
  if (ImGui::BeginPopup(kMainMenu)) {
    const float room = ImGui::GetIO().DisplaySize.x - at.x0;
    const int columns = std::clamp(static_cast<int>(room / ui.px(kItemWidth + kGroupGap)), 1, 4);
    int column = 0;
    for (const MenuGroup& group : menu_groups()) {
      if (column > 0) ImGui::SameLine(0, ui.px(kGroupGap));
      draw_group(ui, group, scene, requests);
      column = (column + 1) % columns;
    }
    const auto is_escape = [](const KeyChord& chord) { return chord.key == Key::escape; };
    if (std::any_of(ui.list_keys.begin(), ui.list_keys.end(), is_escape)) {
      ImGui::CloseCurrentPopup();
    }
    ImGui::EndPopup();
  }
  ImGui::PopStyleVar(2);
}

}  // namespace attnscope
