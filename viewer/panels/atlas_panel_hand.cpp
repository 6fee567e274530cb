// The atlas under the hand: its cursor, its keys, and the heads that are selected.
#include "viewer/panels/atlas_panel.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "viewer/panels/widgets.h"
#include "viewer/view/heads/atlas_cursor.h"
#include "viewer/view/heads/head_selection.h"
#include "viewer/view/view_actions.h"
#include "viewer/view/window_place.h"

namespace attnscope {
namespace {

const char* const kSelectionMenu = "selection";
constexpr float kNarrowHeader = 260;  ///< of such a pane the header has the number alone
constexpr KeyChord kSelectAll{printable_key('A'), true};

std::optional<CursorMove> move_of(const KeyChord& chord) {
  if (chord.ctrl || chord.shift || chord.alt) return std::nullopt;
  switch (chord.key) {
    case Key::left:
      return CursorMove::left;
    case Key::right:
      return CursorMove::right;
    case Key::up:
      return CursorMove::up;
    case Key::down:
      return CursorMove::down;
    case Key::home:
      return CursorMove::first;
    case Key::end:
      return CursorMove::last;
    default:
      return std::nullopt;
  }
}

/// True of keys that are about the head at the cursor.
bool is_of_cursor(const KeyChord& chord) {
  if (chord.ctrl || chord.shift || chord.alt) return false;
  return chord.key == Key::enter || chord.key == Key::escape || chord.key == Key::space ||
         chord.key == printable_key('B');
}

void select_heads(const Scene& scene, std::span<const AtlasHead> heads, SelectHow how,
                  PanelRequests& requests) {
  AtlasLook look = scene.state.atlas;
  look.selected = changed_selection(look.selected, heads, how);
  requests.act(action::SetAtlas{look});
}

/// The words of the header's two buttons.
struct SelectionWords {
  std::string count, clear;
};
SelectionWords selection_words(const Ui& ui, const ScreenRect& rect, const Scene& scene) {
  const bool narrow = rect.width() < ui.px(kNarrowHeader);
  const char* const more = scene.atlas->selected_elsewhere.empty() ? "" : "+";
  return {fmt::format("{}{}{} \u25be", scene.atlas->selected, more, narrow ? "" : " selected"),
          narrow ? "\u00d7" : "Clear"};
}

bool menu_line(const Ui& ui, const char* name, CommandId command, PanelRequests& requests) {
  const bool chosen = ImGui::Selectable(name);
  mark(ui, std::string("Selection/") + name);
  if (ImGui::IsItemHovered()) tooltip(std::string(command_of(command).help));
  if (chosen) requests.command = command;
  return chosen;
}

}  // namespace

void AtlasPanel::forget() {
  keys_.clear();
  cursor_.reset();
  anchor_.reset();
  preview_.reset();
  boxing_ = false;
}

bool AtlasPanel::takes(const KeyChord& chord, bool elsewhere) const {
  if (!drawn_ || !(over_ || maximised_ || (focused_ && !elsewhere))) return false;
  const bool has_cursor = cursor_ || !keys_.empty();
  return move_of(chord) || chord == kSelectAll || (has_cursor && is_of_cursor(chord));
}

void AtlasPanel::take_keys(const AtlasLayout& layout, const ScreenRect& area, const Scene& scene,
                           PanelRequests& requests) {
  const std::vector<AtlasHead> heads = shown_heads(*scene.atlas);
  const auto is_cursor = [&](const AtlasHead& head) { return head.id == cursor_; };
  if (std::none_of(heads.begin(), heads.end(), is_cursor)) cursor_.reset();
  for (const KeyChord& chord : keys_) take_key(chord, layout, scene, requests);
  if (keys_.empty() || !cursor_) return;
  for (const AtlasRow& row : layout.rows) {
    const std::vector<AtlasHead>& line = scene.atlas->lines[row.line].heads;
    const auto first = line.begin() + static_cast<std::ptrdiff_t>(row.first);
    if (std::none_of(first, first + static_cast<std::ptrdiff_t>(row.count), is_cursor)) continue;
    const auto top = static_cast<float>(row.y), bottom = static_cast<float>(row.y + layout.pitch);
    if (top < ImGui::GetScrollY()) ImGui::SetScrollY(top);
    if (bottom > ImGui::GetScrollY() + area.height()) ImGui::SetScrollY(bottom - area.height());
  }
}

void AtlasPanel::take_key(const KeyChord& chord, const AtlasLayout& layout, const Scene& scene,
                          PanelRequests& requests) {
  if (const auto move = move_of(chord)) {
    // Where there is no cursor yet, it begins at the mouse, or at the head that is kept.
    const HeadId from = cursor_ ? *cursor_ : preview_.value_or(scene.locked);
    cursor_ = moved_cursor(*scene.atlas, layout, from, *move);
    by_keys_ = true;
    return;
  }
  const std::vector<AtlasHead> heads = shown_heads(*scene.atlas);
  if (chord == kSelectAll) return select_heads(scene, heads, SelectHow::replace, requests);
  const auto at = std::find_if(heads.begin(), heads.end(),
                               [&](const AtlasHead& head) { return head.id == cursor_; });
  if (at == heads.end()) return;
  if (chord.key == Key::escape) {
    cursor_.reset();
  } else if (chord.key == Key::enter) {
    requests.act(action::SelectHead{at->id});
  } else if (chord.key == Key::space) {
    anchor_ = at->id;
    select_heads(scene, {&*at, 1}, SelectHow::toggle, requests);
  } else if (!scene.other.of_second) {
    requests.act(action::SetOther{at->id});
  }
}

/// The cursor, and while the keys move it the head there in the other panes.
void AtlasPanel::draw_cursor(const Ui& ui, const std::vector<Cell>& cells, const Scene& scene,
                             PanelRequests& requests) {
  if (!cursor_) return;
  const bool shows = by_keys_ && (over_ || maximised_ || (focused_ && !scene.readout));
  if (shows && cursor_ != scene.other.head) requests.preview = cursor_;
  const auto at = std::find_if(cells.begin(), cells.end(),
                               [&](const Cell& cell) { return cell.head->id == cursor_; });
  if (at == cells.end()) return;
  const ScreenRect& r = at->rect;
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  draw.AddRect({r.x0 - ui.px(1), r.y0 - ui.px(1)}, {r.x1 + ui.px(1), r.y1 + ui.px(1)},
               ui.theme.window, 0, 0, ui.px(4));
  draw.AddRect({r.x0 - ui.px(1), r.y0 - ui.px(1)}, {r.x1 + ui.px(1), r.y1 + ui.px(1)},
               ui.theme.text, 0, 0, ui.px(2));
  ui.labels.add("Atlas/Cursor", r);
  if (!shows) return;
  // Beside the cell, towards where the window has more room.
  const ImVec2 window = ImGui::GetIO().DisplaySize;
  const bool is_right = r.x1 > window.x * 0.7f, is_low = r.y1 > window.y / 2;
  ImGui::SetNextWindowPos({is_right ? r.x0 - ui.px(6) : r.x1 + ui.px(6), is_low ? r.y1 : r.y0},
                          ImGuiCond_Always, {is_right ? 1.0f : 0.0f, is_low ? 1.0f : 0.0f});
  tooltip(text_of(*at, scene));
}

void AtlasPanel::click_on(const AtlasHead& head, const Scene& scene, PanelRequests& requests) {
  const ImGuiIO& io = ImGui::GetIO();
  if (io.KeyShift) {
    const auto range = heads_between(*scene.atlas, anchor_.value_or(scene.locked), head.id);
    select_heads(scene, range, io.KeyCtrl ? SelectHow::add : SelectHow::replace, requests);
    return;
  }
  anchor_ = head.id;
  if (io.KeyCtrl) return select_heads(scene, {&head, 1}, SelectHow::toggle, requests);
  requests.act(action::SelectHead{head.id});
}

void AtlasPanel::drag_box(const Ui& ui, const Layout& layout, const ImVec2& origin,
                          const Scene& scene, PanelRequests& requests) {
  const ImGuiIO& io = ImGui::GetIO();
  if (ImGui::IsItemActivated()) {
    box_from_ = {io.MousePos.x - origin.x, io.MousePos.y - origin.y};
    boxing_ = false;
  }
  if (ImGui::IsItemActive()) boxing_ = boxing_ || ImGui::IsMouseDragging(0);
  if (!boxing_) return;
  const ImVec2 from{origin.x + box_from_.x, origin.y + box_from_.y};
  const ScreenRect box{std::min(from.x, io.MousePos.x), std::min(from.y, io.MousePos.y),
                       std::max(from.x, io.MousePos.x), std::max(from.y, io.MousePos.y)};
  if (ImGui::IsItemActive()) {
    // The cells are drawn behind it, and later.
    ImDrawList& draw = *ImGui::GetForegroundDrawList();
    const ImVec2 low = ImGui::GetWindowPos(), size = ImGui::GetWindowSize();
    draw.PushClipRect(low, {low.x + size.x, low.y + size.y});
    draw.AddRectFilled({box.x0, box.y0}, {box.x1, box.y1}, faded(ui.theme.text, 0.25f));
    draw.AddRect({box.x0, box.y0}, {box.x1, box.y1}, ui.theme.window, 0, 0, ui.px(3));
    draw.AddRect({box.x0, box.y0}, {box.x1, box.y1}, ui.theme.text, 0, 0, ui.px(1));
    draw.PopClipRect();
    return;
  }
  boxing_ = false;
  std::vector<AtlasHead> heads;
  for (const AtlasRow& row : layout.cells.rows) {
    for (size_t c = 0; c < row.count; ++c) {
      const AtlasHead& head = scene.atlas->lines[row.line].heads[row.first + c];
      const ScreenRect cell = cell_rect(ui, layout, origin, row, c);
      const bool meets =
          cell.x0 < box.x1 && cell.x1 > box.x0 && cell.y0 < box.y1 && cell.y1 > box.y0;
      if (head.shown && meets) heads.push_back(head);
    }
  }
  const bool adds = io.KeyShift || io.KeyCtrl;
  select_heads(scene, heads, adds ? SelectHow::add : SelectHow::replace, requests);
}

/// The width at the right of the header that draw_selection_buttons() takes; 0: nothing.
float AtlasPanel::selection_width(const Ui& ui, const ScreenRect& rect, const Scene& scene) {
  if (scene.state.atlas.selected.empty()) return 0;
  ImFont* const font = ui.fonts.secondary;
  const auto [count, clear] = selection_words(ui, rect, scene);
  return text_size(font, count).x + text_size(font, clear).x + ui.px(4 * 8 + 4 + 8);
}

/// How many heads are selected, with a list of what can be done with them, and an end of it.
void AtlasPanel::draw_selection_buttons(const Ui& ui, const ScreenRect& rect, const Scene& scene,
                                        PanelRequests& requests) {
  ImGui::PushFont(ui.fonts.secondary);
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(ui.px(8), ui.px(2)));
  const auto [count, clear] = selection_words(ui, rect, scene);
  const float x = rect.x1 - selection_width(ui, rect, scene);
  const float height = ui.fonts.secondary->FontSize + ui.px(4);
  ImGui::SetCursorScreenPos({x, rect.y0 + std::round((ui.px(kHeaderHeight) - height) / 2)});
  const std::string& elsewhere = scene.atlas->selected_elsewhere;
  const std::string hint = "copied or saved as a list for --pick and --from";
  if (tool_button(ui, "Atlas/Selected", count, true,
                  elsewhere.empty() ? hint : hint + "\n" + elsewhere)) {
    ImGui::OpenPopup(kSelectionMenu);
  }
  const ScreenRect button = item_rect();
  ImGui::SameLine(0, ui.px(4));
  if (tool_button(ui, "Atlas/Clear", clear, false, "select no head")) {
    select_heads(scene, {}, SelectHow::replace, requests);
  }
  ImGui::PopStyleVar();
  ImGui::PopFont();
  ImGui::SetNextWindowPos({button.x0, button.y1 + ui.px(4)});
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(ui.px(10), ui.px(8)));
  if (ImGui::BeginPopup(kSelectionMenu)) {
    menu_line(ui, "Copy as --pick \u2026", CommandId::copy_heads, requests);
    menu_line(ui, "Copy as export \u2026", CommandId::export_view, requests);
    menu_line(ui, "Copy as stats \u2026", CommandId::copy_stats, requests);
    if (kWindowHasFiles) {
      menu_line(ui, "Save as file \u2026", CommandId::save_heads, requests);
    }
    const auto is_escape = [](const KeyChord& chord) { return chord.key == Key::escape; };
    if (std::any_of(ui.list_keys.begin(), ui.list_keys.end(), is_escape)) {
      ImGui::CloseCurrentPopup();
    }
    ImGui::EndPopup();
  }
  ImGui::PopStyleVar();
}

}  // namespace attnscope
