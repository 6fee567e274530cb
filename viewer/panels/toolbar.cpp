#include "viewer/panels/toolbar.h"

#include <algorithm>
#include <cctype>

#include "viewer/panels/widgets.h"
#include "viewer/settings/settings.h"
#include "viewer/view/view_actions.h"
#include "viewer/view/window_place.h"

namespace attnscope {
namespace {

/// The word on the menu's button.
constexpr const char* kPaneMenuWord = "Panes";
constexpr const char* kPaneMenu = "pane menu";
constexpr float kItemHeight = 24, kItemWidth = 220;

struct MenuItem {
  CommandId command;
  const char* name;
  /// True where the pane or setting of the item is on; empty: the item switches nothing.
  std::function<bool(const ViewState&)> is_on = {};
};

/// In groups; the groups are apart.
const std::vector<std::vector<MenuItem>>& menu_groups() {
  using enum CommandId;
  static const std::vector<std::vector<MenuItem>> kGroups{
      {{toggle_atlas, "Heads", [](const ViewState& s) { return is_setting_on("atlas", s); }},
       {toggle_words, "Words", [](const ViewState& s) { return is_setting_on("words", s); }},
       {toggle_timeline, "Steps", [](const ViewState& s) { return is_setting_on("timeline", s); }},
       {toggle_volume, "Volume", [](const ViewState& s) { return is_setting_on("volume", s); }},
       {toggle_histogram, "Histogram",
        [](const ViewState& s) { return is_setting_on("histogram", s); }},
       {toggle_frames, "Frames", [](const ViewState& s) { return is_setting_on("frames", s); }},
       {toggle_mask, "Mask", [](const ViewState& s) { return is_setting_on("mask", s); }}},
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
       {picture, "Picture"},
       {figure, "Page of the map"}}};
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

/// A button whose list shows and hides panes, and does what else has a key and no button.
/// Registered as Toolbar/Panes, its items, while it is open, as Panes/NAME. Esc closes it.
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

std::string capitalised(std::string_view word) {
  std::string text(word);
  if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

int place_of(const std::vector<std::string>& words, std::string_view word) {
  const auto found = std::find(words.begin(), words.end(), word);
  return found == words.end() ? -1 : static_cast<int>(found - words.begin());
}

std::string value_on(const HeadValues& values, HeadAxis axis) {
  switch (axis) {
    case HeadAxis::step:
      return std::to_string(values.step);
    case HeadAxis::layer:
      return values.layer == kNoLayer ? "-" : std::to_string(values.layer);
    case HeadAxis::kind:
      return std::string(kind_name(values.kind));
    case HeadAxis::branch:
      return values.branch;
    case HeadAxis::block:
      return values.place.block;
    case HeadAxis::slot:
      return values.place.slot;
    case HeadAxis::chunk:
      return values.place.has_chunk() ? std::to_string(values.place.chunk) : "-";
    case HeadAxis::batch:
      return std::to_string(values.batch);
    case HeadAxis::head:
      break;
  }
  return std::to_string(values.head);
}

/// Around the controls, and to the right of a line's last one.
constexpr float kAir = 6, kSideAir = 12, kEndAir = 8;
constexpr const char* kMenu = "toolbar menu";

float segmented_width(const Ui& ui, const std::vector<std::string>& words) {
  float width = 0;
  for (const std::string& word : words) width += text_size(ui.fonts.body, word).x + ui.px(17);
  return width;
}

}  // namespace

void Toolbar::add_head_choices(const Ui& ui, const HeadPicker& picker, const HeadId& here,
                               const std::string& pane,
                               const std::function<void(const HeadId&)>& take, Controls& to) {
  const HeadValues values = picker.values(here);
  for (const HeadAxis axis :
       {HeadAxis::step, HeadAxis::chunk, HeadAxis::layer, HeadAxis::block, HeadAxis::slot,
        HeadAxis::head, HeadAxis::kind, HeadAxis::branch, HeadAxis::batch}) {
    const std::vector<std::string> words = picker.choices(here, axis);
    const Unrecorded& unrecorded = values.place.unrecorded;
    const bool always = (axis == HeadAxis::step && !unrecorded.step) ||
                        (axis == HeadAxis::layer && !unrecorded.layer) || axis == HeadAxis::head;
    // An axis that has one value alone, or that nobody recorded, needs no control.
    if (words.size() < (always ? 1 : 2)) continue;
    // Layers name the blocks of the main stack, and slots have their kinds.
    if (axis == HeadAxis::block && !picker.leaves_main_stack()) continue;
    if (axis == HeadAxis::kind && !values.place.slot.empty()) continue;
    const std::string caption = capitalised(head_axis_name(axis));
    float widest = 0;
    for (const std::string& word : words) {
      widest = std::max(widest, text_size(ui.fonts.body, word).x);
    }
    const float box = std::clamp(widest / ui.scale, 12.0f, 140.0f) + 44;
    const float whole = ui.px(box + 6) + text_size(ui.fonts.secondary, caption).x;
    const int chosen = place_of(words, value_on(values, axis));
    to.push_back({whole, to.empty() ? 0.0f : 12.0f, [=, &ui, &picker] {
                    const int taken = choice(ui, pane, caption, words, chosen, box);
                    if (taken < 0) return;
                    take(picker.select(here, axis, words[static_cast<size_t>(taken)]));
                  }});
  }
}

void Toolbar::add_appearance(const Ui& ui, const Scene& scene, PanelRequests& requests,
                             Controls& to) {
  const ViewState& state = scene.chosen;
  std::vector<std::string> products;
  std::vector<ViewProduct> there;
  int shown = 0;
  const auto offer = [&](ViewProduct product, const char* word) {
    if (product == state.product) shown = static_cast<int>(there.size());
    there.push_back(product);
    products.emplace_back(word);
  };
  if (scene.call.weights) offer(ViewProduct::weights, "Weight");
  if (scene.call.logits) {
    offer(ViewProduct::logits, is_signed(scene.call.score) ? "Weight" : "Logit");
  }
  if (scene.call.weights) offer(ViewProduct::lift, "Lift");
  to.push_back({segmented_width(ui, products), 20, [=, &ui, &requests] {
                  const int taken = segmented(
                      ui, "Toolbar", products, shown,
                      "weights, logits before the softmax, or weights times the number of keys");
                  if (taken >= 0)
                    requests.act(action::SetProduct{there[static_cast<size_t>(taken)]});
                }});
  const std::vector<std::string> pools{"Max", "Mean"};
  to.push_back({segmented_width(ui, pools), 12, [=, &ui, &state, &requests] {
                  const int taken = segmented(ui, "Toolbar", pools, static_cast<int>(state.pool),
                                              "what a pixel shows of the entries under it (M)");
                  if (taken >= 0) requests.act(action::SetPool{static_cast<Pool>(taken)});
                }});

  std::vector<std::string> scales;
  std::vector<ScaleKind> suiting;
  for (const ScaleKind scale :
       {ScaleKind::log2, ScaleKind::linear, ScaleKind::sqrt, ScaleKind::symlog}) {
    if (!scale_suits(scale, state.product)) continue;
    suiting.push_back(scale);
    scales.emplace_back(scale_kind_name(scale));
  }
  to.push_back({ui.px(140), 12, [=, &ui, &state, &requests] {
                  const int taken = choice(ui, "Toolbar", "Scale", scales,
                                           place_of(scales, scale_kind_name(state.scale)), 92);
                  if (taken >= 0)
                    requests.act(action::SetScale{suiting[static_cast<size_t>(taken)]});
                }});
  const std::vector<std::string> maps = colormap_names();
  to.push_back({ui.px(155), 12, [=, &ui, &state, &requests] {
                  const int taken =
                      choice(ui, "Toolbar", "Colours", maps, place_of(maps, state.colormap), 96);
                  if (taken >= 0)
                    requests.act(action::SetColormap{maps[static_cast<size_t>(taken)]});
                }});
}

void Toolbar::add_pane_menu(const Ui& ui, const Scene& scene, PanelRequests& requests,
                            Controls& to) {
  to.push_back({segmented_width(ui, {kPaneMenuWord}), 12,
                [&ui, &scene, &requests] { draw_pane_menu(ui, scene, requests); }});
}

void Toolbar::add_window_buttons(const Ui& ui, const Scene& scene, PanelRequests& requests,
                                 Controls& to) {
  const bool light = scene.chosen.theme == ViewTheme::light;
  const std::string theme = light ? "Dark" : "Light";
  std::vector<std::string> words{theme, "?"};
  if (kWindowHasFiles) words.insert(words.begin(), "Open");
  const float width = segmented_width(ui, words) + ui.px(8);
  to.push_back({width, 12, [=, this, &ui, &requests] {
                  const float right = rect_.x1 - ui.px(12) - width;
                  const ImVec2 at = ImGui::GetCursorScreenPos();
                  ImGui::SetCursorScreenPos({std::max(at.x, right), at.y});
                  if (kWindowHasFiles) {
                    if (tool_button(ui, "Toolbar/Open", "Open", false, "a capture (Ctrl+O)")) {
                      requests.show_browser = true;
                    }
                    ImGui::SameLine(0, ui.px(4));
                  }
                  if (tool_button(ui, "Toolbar/Theme", theme, false, "the other theme")) {
                    requests.act(action::SetTheme{light ? ViewTheme::dark : ViewTheme::light});
                  }
                  ImGui::SameLine(0, ui.px(4));
                  if (tool_button(ui, "Toolbar/Help", "?", false, "all keys (?)")) {
                    requests.show_help = true;
                  }
                }});
}

float Toolbar::controls_height(const Ui& ui, const Controls& controls, float width) const {
  int lines = 1;
  float x = ui.px(kSideAir);
  for (const Control& control : controls) {
    if (&control != &controls.front()) x += ui.px(control.gap);
    if (x > ui.px(kSideAir) && x + control.width > width - ui.px(kEndAir)) {
      ++lines;
      x = ui.px(kSideAir);
    }
    x += control.width;
  }
  const float between = ImGui::GetStyle().ItemSpacing.y;
  return static_cast<float>(lines) * (ImGui::GetFrameHeight() + between) - between +
         2 * ui.px(kAir);
}

float Toolbar::draw_controls(const Ui& ui, const Controls& controls) {
  ImGui::SetCursorScreenPos({rect_.x0 + ui.px(kSideAir), rect_.y0 + ui.px(kAir)});
  for (const Control& control : controls) {
    if (&control != &controls.front()) {
      ImGui::SameLine(0, ui.px(control.gap));
      if (ImGui::GetCursorScreenPos().x + control.width > rect_.x1 - ui.px(kEndAir)) {
        ImGui::NewLine();
        ImGui::SetCursorScreenPos({rect_.x0 + ui.px(kSideAir), ImGui::GetCursorScreenPos().y});
      }
    }
    control.draw();
  }
  return ImGui::GetItemRectMax().y;
}

/// The menu and its button, and beside it which head is seen.
float Toolbar::draw_folded(const Ui& ui, const ScreenRect& rect, const Scene& scene,
                           const Controls& controls) {
  const ImVec2 at{rect.x0 + ui.px(kSideAir), rect.y0 + ui.px(kAir)};
  ImGui::SetCursorScreenPos(at);
  const bool open = ImGui::IsPopupOpen(kMenu);
  if (tool_button(ui, "Toolbar/Menu", "Menu", open, "")) ImGui::OpenPopup(kMenu);
  const ScreenRect button = item_rect();
  const float x = button.x1 + ui.px(kSideAir);
  ImFont* const font = ui.fonts.secondary;
  put_fitting(ui, font, x, (button.y0 + button.y1 - font->FontSize) / 2,
              rect.x1 - ui.px(kSideAir) - x, ui.theme.secondary,
              scene.picker.title(scene.chosen.head));
  const float top = button.y1 + ui.px(kAir);
  rect_ = {rect.x0, top, rect.x1, top + controls_height(ui, controls, rect.width())};
  ImGui::SetNextWindowPos({rect_.x0, rect_.y0});
  ImGui::SetNextWindowSize({rect_.width(), rect_.height()});
  if (ImGui::BeginPopup(kMenu)) {
    // Of a list within the menu it is the list that Esc closes.
    const bool list = ImGui::IsPopupOpen("", ImGuiPopupFlags_AnyPopupId);
    draw_controls(ui, controls);
    const auto is_escape = [](const KeyChord& chord) { return chord.key == Key::escape; };
    if (!list && std::any_of(ui.list_keys.begin(), ui.list_keys.end(), is_escape)) {
      ImGui::CloseCurrentPopup();
    }
    ImGui::EndPopup();
  }
  return button.y1;
}

void Toolbar::draw(const Ui& ui, const ScreenRect& rect, float most, const Scene& scene,
                   PanelRequests& requests) {
  begin_pane(ui, "toolbar", rect);
  Controls controls;
  add_head_choices(
      ui, scene.picker, scene.chosen.head, "Toolbar",
      [&](const HeadId& head) { requests.act(action::SelectHead{head}); }, controls);
  add_appearance(ui, scene, requests, controls);
  add_pane_menu(ui, scene, requests, controls);
  add_comparison(ui, scene, requests, controls);
  add_window_buttons(ui, scene, requests, controls);
  rect_ = rect;
  const bool folds = controls_height(ui, controls, rect.width()) > most;
  const float bottom = folds ? draw_folded(ui, rect, scene, controls) : draw_controls(ui, controls);
  height_ = bottom - rect.y0 + ui.px(kAir);
  end_pane();
}

}  // namespace attnscope
