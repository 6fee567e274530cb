#include "viewer/panels/toolbar.h"

#include <algorithm>
#include <cctype>

#include "viewer/panels/main_menu.h"
#include "viewer/panels/widgets.h"
#include "viewer/view/view_actions.h"
#include "viewer/view/window_place.h"

namespace attnscope {
namespace {

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
constexpr const char* kControls = "toolbar controls";
constexpr const char* kLook = "toolbar look";
/// Room of the fields in what a line leaves free.
constexpr float kLeastPlace = 132, kMostPlace = 320, kSearch = 208;

bool is_escaped(const Ui& ui) {
  const auto is_escape = [](const KeyChord& chord) { return chord.key == Key::escape; };
  return std::any_of(ui.list_keys.begin(), ui.list_keys.end(), is_escape);
}

float segmented_width(const Ui& ui, const std::vector<std::string>& words) {
  float width = 0;
  for (const std::string& word : words) width += text_size(ui.fonts.body, word).x + ui.px(17);
  return width;
}

}  // namespace

std::vector<Toolbar::AxisChoice> Toolbar::axis_choices(const Ui& ui, const HeadPicker& picker,
                                                       const HeadId& here) {
  const HeadValues values = picker.values(here);
  std::vector<AxisChoice> choices;
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
    float widest = 0;
    for (const std::string& word : words) {
      widest = std::max(widest, text_size(ui.fonts.body, word).x);
    }
    choices.push_back({axis, words, place_of(words, value_on(values, axis)),
                       std::clamp(widest / ui.scale, 12.0f, 140.0f) + 44});
  }
  return choices;
}

void Toolbar::stand_together(std::vector<AxisChoice>& a, std::vector<AxisChoice>& b) {
  // Both in the order of axes, so that one that is missing has its place before the next.
  for (size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    const auto of = [&](const std::vector<AxisChoice>& choices, HeadAxis axis) {
      return std::any_of(choices.begin(), choices.end(),
                         [&](const AxisChoice& each) { return each.axis == axis; });
    };
    const auto gap = [](const AxisChoice& beside) {
      return AxisChoice{beside.axis, {}, -1, beside.box};
    };
    const auto at = static_cast<std::ptrdiff_t>(i);
    if (i >= a.size() || (i < b.size() && !of(a, b[i].axis))) {
      a.insert(a.begin() + at, gap(b[i]));
    } else if (i >= b.size() || !of(b, a[i].axis)) {
      b.insert(b.begin() + at, gap(a[i]));
    }
    a[i].box = b[i].box = std::max(a[i].box, b[i].box);
  }
}

void Toolbar::add_head_choices(const Ui& ui, const std::vector<AxisChoice>& choices,
                               const HeadPicker& picker, const HeadId& here,
                               const std::string& pane,
                               const std::function<void(const HeadId&)>& take, Controls& to) {
  for (const AxisChoice& each : choices) {
    const std::string caption = capitalised(head_axis_name(each.axis));
    const float whole = ui.px(each.box + 6) + text_size(ui.fonts.secondary, caption).x;
    to.push_back({whole, 12.0f, [=, &ui, &picker] {
                    if (each.words.empty()) {
                      ImGui::Dummy({whole, ImGui::GetFrameHeight()});
                      return;
                    }
                    const int taken = choice(ui, pane, caption, each.words, each.chosen, each.box);
                    if (taken < 0) return;
                    take(picker.select(here, each.axis, each.words[static_cast<size_t>(taken)]));
                  }});
  }
}

void Toolbar::add_products(const Ui& ui, const Scene& scene, PanelRequests& requests,
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
}

namespace {

/// How numbers become colours: chosen seldom, and so in a list of its own. Labels begin with Look.
void draw_look(const Ui& ui, const Scene& scene, PanelRequests& requests) {
  const ViewState& state = scene.chosen;
  if (const int taken = segmented(ui, "Look", {"Max", "Mean"}, static_cast<int>(state.pool),
                                  "the number that a pixel shows of the entries under it (M)");
      taken >= 0) {
    requests.act(action::SetPool{static_cast<Pool>(taken)});
  }
  std::vector<std::string> scales;
  std::vector<ScaleKind> suiting;
  for (const ScaleKind scale :
       {ScaleKind::log2, ScaleKind::linear, ScaleKind::sqrt, ScaleKind::symlog}) {
    if (!scale_suits(scale, state.product)) continue;
    suiting.push_back(scale);
    scales.emplace_back(scale_kind_name(scale));
  }
  if (const int taken =
          choice(ui, "Look", "Scale", scales, place_of(scales, scale_kind_name(state.scale)), 96);
      taken >= 0) {
    requests.act(action::SetScale{suiting[static_cast<size_t>(taken)]});
  }
  const std::vector<std::string> maps = colormap_names();
  if (const int taken = choice(ui, "Look", "Colours", maps, place_of(maps, state.colormap), 96);
      taken >= 0) {
    requests.act(action::SetColormap{maps[static_cast<size_t>(taken)]});
  }
}

}  // namespace

void Toolbar::add_look(const Ui& ui, const Scene& scene, PanelRequests& requests, Controls& to) {
  to.push_back({segmented_width(ui, {"Look"}), 12, [&ui, &scene, &requests] {
                  if (tool_button(ui, "Toolbar/Look", "Look", ImGui::IsPopupOpen(kLook),
                                  "the entry that a pixel shows, scale and colours (M, L, C)")) {
                    ImGui::OpenPopup(kLook);
                  }
                  const ScreenRect button = item_rect();
                  ImGui::SetNextWindowPos({button.x0, button.y1 + ui.px(4)});
                  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(ui.px(10), ui.px(10)));
                  if (ImGui::BeginPopup(kLook)) {
                    // Of a list within it it is the list that Esc closes.
                    const bool list = ImGui::IsPopupOpen("", ImGuiPopupFlags_AnyPopupId);
                    draw_look(ui, scene, requests);
                    if (!list && is_escaped(ui)) ImGui::CloseCurrentPopup();
                    ImGui::EndPopup();
                  }
                  ImGui::PopStyleVar();
                }});
}

/// In the room that a line of the others, `taken` pixels long, leaves.
void Toolbar::add_fields(const Ui& ui, float taken, const Scene& scene, PanelRequests& requests,
                         Controls& to) {
  const float gap = ui.px(12);
  float room = rect_.width() - ui.px(kSideAir + kEndAir) - taken - gap;
  if (room < ui.px(kLeastPlace)) return;
  const float search = ui.px(kSearch);
  const bool searches = room >= ui.px(kLeastPlace) + gap + search;
  if (searches) room -= gap + search;
  const float place = std::min(room, ui.px(kMostPlace));
  to.push_back(
      {place, 12, [=, this, &ui, &scene, &requests] { place_.draw(ui, place, scene, requests); }});
  if (!searches) return;
  to.push_back({search, 12, [=, &ui, &requests] {
                  const ImVec2 at = ImGui::GetCursorScreenPos();
                  const float height = ImGui::GetFrameHeight();
                  if (ImGui::InvisibleButton("search", {search, height})) {
                    requests.command = CommandId::palette;
                  }
                  mark(ui, "Toolbar/Search");
                  const bool hovered = ImGui::IsItemHovered();
                  ImGui::GetWindowDrawList()->AddRectFilled(
                      at, {at.x + search, at.y + height},
                      hovered ? ui.theme.hovered : ui.theme.raised, ui.px(3));
                  const float keys = text_size(ui.fonts.mono, "Ctrl+P").x + ui.px(16);
                  put_fitting(ui, ui.fonts.body, at.x + ui.px(8),
                              at.y + (height - ui.fonts.body->FontSize) / 2,
                              search - keys - ui.px(8), ui.theme.secondary,
                              "Search or go to\u2026");
                  put_text(ui, ui.fonts.mono, at.x + search - ui.px(8),
                           at.y + (height - ui.fonts.mono->FontSize) / 2, ui.theme.secondary,
                           "Ctrl+P", Align::right);
                }});
}

float Toolbar::window_buttons_width(const Ui& ui, const Scene& scene, bool opens) {
  std::vector<std::string> words{scene.chosen.theme == ViewTheme::light ? "Dark" : "Light", "?"};
  if (opens) words.insert(words.begin(), "Open");
  return segmented_width(ui, words) + ui.px(8);
}

void Toolbar::add_window_buttons(const Ui& ui, const Scene& scene, bool opens,
                                 PanelRequests& requests, Controls& to) {
  const bool light = scene.chosen.theme == ViewTheme::light;
  const std::string theme = light ? "Dark" : "Light";
  const float width = window_buttons_width(ui, scene, opens);
  to.push_back({width, 12, [=, this, &ui, &requests] {
                  const float right = rect_.x1 - ui.px(12) - width;
                  const ImVec2 at = ImGui::GetCursorScreenPos();
                  ImGui::SetCursorScreenPos({std::max(at.x, right), at.y});
                  if (opens) {
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
    const bool full = x > ui.px(kSideAir) && x + control.width > width - ui.px(kEndAir);
    if (full || control.begins_line) {
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
      const float end = ImGui::GetCursorScreenPos().x + control.width;
      if (control.begins_line || end > rect_.x1 - ui.px(kEndAir)) {
        ImGui::NewLine();
        ImGui::SetCursorScreenPos({rect_.x0 + ui.px(kSideAir), ImGui::GetCursorScreenPos().y});
      }
    }
    control.draw();
  }
  return ImGui::GetItemRectMax().y;
}

/// The menu, a button for the controls, and beside it which head is seen.
float Toolbar::draw_folded(const Ui& ui, const ScreenRect& rect, const Scene& scene,
                           PanelRequests& requests, const Controls& controls) {
  ImGui::SetCursorScreenPos({rect.x0 + ui.px(kSideAir), rect.y0 + ui.px(kAir)});
  draw_main_menu(ui, scene, requests);
  ImGui::SameLine(0, ui.px(6));
  const bool open = ImGui::IsPopupOpen(kControls);
  if (tool_button(ui, "Toolbar/Controls", "Controls", open, "")) ImGui::OpenPopup(kControls);
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
  if (ImGui::BeginPopup(kControls)) {
    // Of a list within it it is the list that Esc closes.
    const bool list = ImGui::IsPopupOpen("", ImGuiPopupFlags_AnyPopupId);
    draw_controls(ui, controls);
    if (!list && is_escaped(ui)) ImGui::CloseCurrentPopup();
    ImGui::EndPopup();
  }
  return button.y1;
}

void Toolbar::draw(const Ui& ui, const ScreenRect& rect, float most, const Scene& scene,
                   PanelRequests& requests) {
  begin_pane(ui, "toolbar", rect);
  rect_ = rect;
  const std::optional<OtherSide>& other = scene.chosen.other;
  std::vector<AxisChoice> own = axis_choices(ui, scene.picker, scene.chosen.head), others;
  if (other) {
    others = axis_choices(ui, scene.other.picker, other->head);
    stand_together(own, others);
  }
  Controls controls, last;
  add_head_choices(
      ui, own, scene.picker, scene.chosen.head, "Toolbar",
      [&](const HeadId& head) { requests.act(action::SelectHead{head}); }, controls);
  add_products(ui, scene, requests, controls);
  add_look(ui, scene, requests, controls);
  add_comparison(ui, scene, requests, controls);
  const float menu = main_menu_width(ui);
  Controls all{{menu, 0, [&ui, &scene, &requests] { draw_main_menu(ui, scene, requests); }}};
  all.insert(all.end(), controls.begin(), controls.end());
  float taken = ui.px(12);
  for (const Control& control : all) taken += control.width + ui.px(control.gap);
  // The menu has it too.
  const float most_width = rect.width() - ui.px(kSideAir + kEndAir);
  const bool opens = kWindowHasFiles && taken + window_buttons_width(ui, scene, true) <= most_width;
  taken += window_buttons_width(ui, scene, opens);
  add_window_buttons(ui, scene, opens, requests, last);
  if (other) add_other(ui, others, scene, requests, last);
  Controls folded = controls;
  folded.insert(folded.end(), last.begin(), last.end());
  add_fields(ui, taken, scene, requests, all);
  all.insert(all.end(), last.begin(), last.end());
  const bool folds = controls_height(ui, all, rect.width()) > most;
  const float bottom =
      folds ? draw_folded(ui, rect, scene, requests, folded) : draw_controls(ui, all);
  height_ = bottom - rect.y0 + ui.px(kAir);
  end_pane();
}

}  // namespace attnscope
