#include "viewer/panels/pane_menu.h"

#include <algorithm>
#include <functional>
#include <string>

#include "viewer/panels/widgets.h"

namespace attnscope {
namespace {

constexpr const char* kPaneMenu = "pane menu";
constexpr float kItemHeight = 24, kItemWidth = 220;

struct MenuItem {
  CommandId command;
  const char* name;
  /// Whether what it shows is shown; empty: it shows nothing.
  std::function<bool(const ViewState&)> is_on = {};
};

/// In groups; the groups are apart.
const std::vector<std::vector<MenuItem>>& menu_groups() {
  using enum CommandId;
  static const std::vector<std::vector<MenuItem>> kGroups{
      {{toggle_atlas, "Heads", [](const ViewState& s) { return s.atlas.shown; }},
       {toggle_words, "Words", [](const ViewState& s) { return s.words.shown; }},
       {toggle_timeline, "Steps", [](const ViewState& s) { return s.timeline.shown; }},
       {toggle_volume, "Volume", [](const ViewState& s) { return s.volume.shown; }},
       {toggle_histogram, "Histogram", [](const ViewState& s) { return s.show_histogram; }},
       {toggle_frames, "Frames", [](const ViewState& s) { return s.show_frames; }},
       {toggle_mask, "Mask", [](const ViewState& s) { return s.mask.shown; }}},
      {{next_row_track, "Numbers of rows",
        [](const ViewState& s) { return s.tracks.rows != RowTrack::off; }},
       {next_key_track, "Mass of keys",
        [](const ViewState& s) { return s.tracks.keys != KeyTrack::off; }},
       {toggle_equal_axes, "Equal axes", [](const ViewState& s) { return s.equal_axes; }},
       {flip_order, "Order before"},
       {fit, "Whole map"}},
      {{back, "Undo"}, {forward, "Redo"}},
      {{palette, "Search\u2026"},
       {messages, "Messages"},
       {copy_view, "Copy as command"},
       {export_view, "Copy export"},
       {save_session, "Save session"},
       {picture, "Picture"}}};
  return kGroups;
}

/// A line of the menu: a mark where it is on, its name, its key.
bool menu_item(const Ui& ui, const MenuItem& item, const ViewState& state) {
  const ViewCommand& command = command_of(item.command);
  if (!command.here) return false;
  ImGui::PushID(item.name);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const bool clicked = ImGui::InvisibleButton("item", {ui.px(kItemWidth), ui.px(kItemHeight)});
  ImGui::PopID();
  mark(ui, std::string("Panes/") + item.name);
  const ScreenRect rect = item_rect();
  if (ImGui::IsItemHovered()) {
    ImGui::GetWindowDrawList()->AddRectFilled({rect.x0, rect.y0}, {rect.x1, rect.y1},
                                              ui.theme.hovered, ui.px(3));
    tooltip(std::string(command.help));
  }
  const float middle = (rect.y0 + rect.y1) / 2;
  if (item.is_on && item.is_on(state)) {
    ImGui::GetWindowDrawList()->AddCircleFilled({at.x + ui.px(10), middle}, ui.px(3),
                                                ui.theme.text);
  }
  put_text(ui, ui.fonts.body, at.x + ui.px(22), middle - ui.fonts.body->FontSize / 2, ui.theme.text,
           item.name);
  const std::string chord = chord_text(parse_chord(command.chords.front()));
  put_text(ui, ui.fonts.mono, rect.x1 - ui.px(8), middle - ui.fonts.mono->FontSize / 2,
           ui.theme.secondary, chord, Align::right);
  return clicked;
}

}  // namespace

void draw_pane_menu(const Ui& ui, const Scene& scene, PanelRequests& requests) {
  const bool open = ImGui::IsPopupOpen(kPaneMenu);
  if (tool_button(ui, "Toolbar/Panes", kPaneMenuWord, open,
                  "what is shown, and what else is there")) {
    ImGui::OpenPopup(kPaneMenu);
  }
  const ScreenRect button = item_rect();
  ImGui::SetNextWindowPos({button.x0, button.y1 + ui.px(4)});
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(ui.px(6), ui.px(6)));
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(0, 0));
  if (ImGui::BeginPopup(kPaneMenu)) {
    for (const std::vector<MenuItem>& group : menu_groups()) {
      if (&group != &menu_groups().front()) {
        ImGui::Dummy({0, ui.px(4)});
        ImGui::Separator();
        ImGui::Dummy({0, ui.px(4)});
      }
      for (const MenuItem& item : group) {
        if (!menu_item(ui, item, scene.chosen)) continue;
        requests.command = item.command;
        ImGui::CloseCurrentPopup();
      }
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
