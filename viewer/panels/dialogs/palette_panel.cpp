#include "viewer/panels/dialogs/palette_panel.h"

#include <algorithm>

#include "viewer/commands/list_keys.h"
#include "viewer/panels/widgets.h"

namespace attnscope {
namespace {

constexpr float kItemHeight = 30;
constexpr int kShownItems = 11;

/// Copies the text to ImGui's field, which shows a copy of its own while it is active.
int take_text(ImGuiInputTextCallbackData* data) {
  const auto& text = *static_cast<const std::string*>(data->UserData);
  if (text == data->Buf) return 0;
  data->DeleteChars(0, data->BufTextLen);
  data->InsertChars(0, text.c_str());
  return 0;
}

}  // namespace

void PalettePanel::open() {
  open_ = true;
  active_ = false;
  problem_.clear();
  set_text("");
}

void PalettePanel::set_text(const std::string& text) {
  const size_t size = std::min(text.size(), text_.size() - 1);
  std::copy_n(text.begin(), size, text_.begin());
  text_[size] = 0;
  refill_ = true;
  mark_first();
}

void PalettePanel::mark_first() {
  const bool empty = text().find_first_not_of(' ') == std::string::npos;
  marked_ = empty ? std::nullopt : std::optional<size_t>(0);
  moved_ = true;
}

std::optional<size_t> PalettePanel::press(const KeyChord& chord, size_t items) {
  if (chord.key == Key::escape) {
    close();
  } else if (chord.key == Key::enter) {
    if (marked_ && items > 0) return std::min(*marked_, items - 1);
  } else if (chord.key != Key::home && chord.key != Key::end && items > 0) {
    const int at = marked_ ? static_cast<int>(*marked_) : -1;
    const auto to = moved_in_list(chord, at, static_cast<int>(items));
    if (!to) return std::nullopt;
    marked_ = static_cast<size_t>(*to);
    moved_ = true;
  }
  return std::nullopt;
}

void PalettePanel::draw_field(const Ui& ui, float width) {
  ImGui::PushFont(ui.fonts.body);
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, {ui.px(10), ui.px(7)});
  ImGui::PushStyleColor(ImGuiCol_FrameBg, to_vec4(ui.theme.window));
  ImGui::SetNextItemWidth(width);
  // The field has the keys a frame later.
  if (ImGui::IsWindowAppearing() || (!active_ && !ImGui::IsMouseDown(0))) {
    ImGui::SetKeyboardFocusHere();
  }
  std::string wanted = text();
  const std::string before = wanted;
  ImGui::InputTextWithHint(
      "##palette", "a command, a script word, 6,15,22, l12 h3, a word of the prompt", text_.data(),
      text_.size(), refill_ ? ImGuiInputTextFlags_CallbackAlways : ImGuiInputTextFlags_None,
      refill_ ? take_text : nullptr, refill_ ? &wanted : nullptr);
  mark(ui, "Palette/Field");
  active_ = ImGui::IsItemActive();
  refill_ = false;
  if (text() != before) {
    mark_first();
    problem_.clear();
  }
  ImGui::PopStyleColor();
  ImGui::PopStyleVar();
  ImGui::PopFont();
}

std::optional<size_t> PalettePanel::draw_items(const Ui& ui, const std::vector<PaletteItem>& items,
                                               float width) {
  const float line = ui.px(kItemHeight);
  std::optional<size_t> taken;
  if (marked_) marked_ = items.empty() ? 0 : std::min(*marked_, items.size() - 1);
  for (size_t i = 0; i < items.size(); ++i) {
    const PaletteItem& item = items[i];
    const ImVec2 at = ImGui::GetCursorScreenPos();
    ImGui::PushID(static_cast<int>(i));
    if (ImGui::Selectable("##item", i == marked_, 0, {width, line - ui.px(6)})) taken = i;
    if (i == marked_ && moved_) ImGui::SetScrollHereY();
    ImGui::PopID();
    mark(ui, "Palette/" + item.title);
    const float keys = item.keys.empty() ? 0 : text_size(ui.fonts.mono, item.keys).x + ui.px(16);
    put_text(ui, ui.fonts.mono, at.x + width - ui.px(8), at.y + ui.px(3), ui.theme.key, item.keys,
             Align::right);
    const float title = put_fitting(ui, ui.fonts.body, at.x + ui.px(8), at.y + ui.px(2),
                                    (width - keys) * 0.6f, ui.theme.text, item.title);
    const float used = title + ui.px(24);
    put_fitting(ui, ui.fonts.secondary, at.x + used, at.y + ui.px(4),
                width - keys - used - ui.px(8), ui.theme.secondary, item.detail);
  }
  moved_ = false;
  return taken;
}

std::optional<size_t> PalettePanel::draw(const Ui& ui, const ScreenRect& window,
                                         const std::vector<PaletteItem>& items) {
  const float width = std::min(window.width() - ui.px(32), ui.px(760));
  const int lines = std::clamp(static_cast<int>(items.size()), 1, kShownItems);
  const float height = std::min(window.height() - ui.px(32),
                                ui.px(84) + static_cast<float>(lines) * ui.px(kItemHeight));
  const ImVec2 at{(window.x0 + window.x1 - width) / 2,
                  std::min(window.y0 + ui.px(64), window.y1 - height - ui.px(16))};
  ImGui::SetNextWindowPos(at);
  ImGui::SetNextWindowSize({width, height});
  ImGui::PushStyleColor(ImGuiCol_WindowBg, to_vec4(ui.theme.pane));
  ImGui::PushStyleVar(ImGuiStyleVar_WindowBorderSize, ui.px(1));
  ImGui::Begin("Palette", nullptr,
               ImGuiWindowFlags_NoTitleBar | ImGuiWindowFlags_NoResize | ImGuiWindowFlags_NoMove |
                   ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoNav |
                   ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoScrollWithMouse);
  const bool appears = ImGui::IsWindowAppearing();
  if (appears) ImGui::SetWindowFocus();
  ImGui::SetCursorScreenPos({at.x + ui.px(12), at.y + ui.px(12)});
  draw_field(ui, width - ui.px(24));
  const std::string below = !problem_.empty() ? problem_ : items.empty() ? "nothing fits" : "";
  put_fitting(ui, ui.fonts.secondary, at.x + ui.px(22), at.y + ui.px(50), width - ui.px(44),
              problem_.empty() ? ui.theme.secondary : ui.theme.problem, below);
  ImGui::SetCursorScreenPos({at.x + ui.px(12), at.y + ui.px(below.empty() ? 54 : 72)});
  ImGui::BeginChild("items", {width - ui.px(24), 0});
  std::optional<size_t> taken = draw_items(ui, items, width - ui.px(24));
  ImGui::EndChild();
  const bool outside = ImGui::IsMouseClicked(0) && !appears &&
                       !ImGui::IsWindowHovered(ImGuiHoveredFlags_RootAndChildWindows);
  ImGui::End();
  ImGui::PopStyleVar();
  ImGui::PopStyleColor();
  ui.labels.add("Palette/Panel", {at.x, at.y, at.x + width, at.y + height});
  if (outside) close();
  return taken;
}

}  // namespace attnscope
