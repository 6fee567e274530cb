#include "viewer/panels/toolbar.h"

#include <algorithm>
#include <cctype>

#include "viewer/panels/widgets.h"
#include "viewer/view/view_actions.h"

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
      return std::to_string(values.layer);
    case HeadAxis::kind:
      return std::string(kind_name(values.kind));
    case HeadAxis::branch:
      return values.branch;
    case HeadAxis::batch:
      return std::to_string(values.batch);
    case HeadAxis::head:
      break;
  }
  return std::to_string(values.head);
}

float segmented_width(const Ui& ui, const std::vector<std::string>& words) {
  float width = 0;
  for (const std::string& word : words) width += text_size(ui.fonts.body, word).x + ui.px(17);
  return width;
}

}  // namespace

void Toolbar::flow(const Ui& ui, float width, float gap) {
  if (!first_) {
    ImGui::SameLine(0, ui.px(gap));
    if (ImGui::GetCursorScreenPos().x + width > rect_.x1 - ui.px(8)) {
      ImGui::NewLine();
      ImGui::SetCursorScreenPos({rect_.x0 + ui.px(12), ImGui::GetCursorScreenPos().y});
    }
  }
  first_ = false;
}

void Toolbar::head_choices(const Ui& ui, const Scene& scene, PanelRequests& requests) {
  const HeadId here = scene.state.head;
  const HeadValues values = scene.picker.values(here);
  for (const HeadAxis axis : {HeadAxis::step, HeadAxis::layer, HeadAxis::head, HeadAxis::kind,
                              HeadAxis::branch, HeadAxis::batch}) {
    const std::vector<std::string> words = scene.picker.choices(here, axis);
    const bool always = axis == HeadAxis::step || axis == HeadAxis::layer || axis == HeadAxis::head;
    // What there is only one of needs no control.
    if (words.size() < 2 && !always) continue;
    const std::string caption = capitalised(head_axis_name(axis));
    float widest = 0;
    for (const std::string& word : words) {
      widest = std::max(widest, text_size(ui.fonts.body, word).x);
    }
    const float box = std::clamp(widest / ui.scale, 12.0f, 140.0f) + 44;
    const float whole = ui.px(box + 6) + text_size(ui.fonts.secondary, caption).x;
    flow(ui, whole, first_ ? 0 : 12);
    const int taken =
        choice(ui, "Toolbar", caption, words, place_of(words, value_on(values, axis)), box);
    if (taken >= 0) {
      requests.act(
          action::SelectHead{scene.picker.select(here, axis, words[static_cast<size_t>(taken)])});
    }
  }
}

void Toolbar::appearance(const Ui& ui, const Scene& scene, PanelRequests& requests) {
  const ViewState& state = scene.state;
  std::vector<std::string> products;
  std::vector<ViewProduct> there;
  int shown = 0;
  const auto offer = [&](ViewProduct product, const char* word) {
    if (product == state.product) shown = static_cast<int>(there.size());
    there.push_back(product);
    products.emplace_back(word);
  };
  if (scene.call.weights) offer(ViewProduct::weights, "Weight");
  if (scene.call.logits) offer(ViewProduct::logits, "Logit");
  if (scene.call.weights) offer(ViewProduct::lift, "Lift");
  flow(ui, segmented_width(ui, products), 20);
  int taken = segmented(ui, "Toolbar", products, shown,
                        "weights, logits before the softmax, or weights times the number of keys");
  if (taken >= 0) requests.act(action::SetProduct{there[static_cast<size_t>(taken)]});
  const std::vector<std::string> pools{"Max", "Mean"};
  flow(ui, segmented_width(ui, pools), 12);
  taken = segmented(ui, "Toolbar", pools, static_cast<int>(state.pool),
                    "what a pixel shows of the entries under it (M)");
  if (taken >= 0) requests.act(action::SetPool{static_cast<Pool>(taken)});

  std::vector<std::string> scales;
  std::vector<ScaleKind> suiting;
  for (const ScaleKind scale :
       {ScaleKind::log2, ScaleKind::linear, ScaleKind::sqrt, ScaleKind::symlog}) {
    if (!scale_suits(scale, state.product)) continue;
    suiting.push_back(scale);
    scales.emplace_back(scale_kind_name(scale));
  }
  flow(ui, ui.px(140), 12);
  taken =
      choice(ui, "Toolbar", "Scale", scales, place_of(scales, scale_kind_name(state.scale)), 92);
  if (taken >= 0) requests.act(action::SetScale{suiting[static_cast<size_t>(taken)]});
  const std::vector<std::string> maps = colormap_names();
  flow(ui, ui.px(155), 12);
  taken = choice(ui, "Toolbar", "Colours", maps, place_of(maps, state.colormap), 96);
  if (taken >= 0) requests.act(action::SetColormap{maps[static_cast<size_t>(taken)]});
}

void Toolbar::window_buttons(const Ui& ui, const Scene& scene, PanelRequests& requests) {
  const bool light = scene.state.theme == ViewTheme::light;
  const std::string theme = light ? "Dark" : "Light";
  const float width = segmented_width(ui, {"Open", theme, "?"}) + ui.px(8);
  flow(ui, width, 12);
  const float right = rect_.x1 - ui.px(12) - width;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImGui::SetCursorScreenPos({std::max(at.x, right), at.y});
  if (tool_button(ui, "Toolbar/Open", "Open", false, "a capture (Ctrl+O)")) {
    requests.show_browser = true;
  }
  ImGui::SameLine(0, ui.px(4));
  if (tool_button(ui, "Toolbar/Theme", theme, false, "the other theme")) {
    requests.act(action::SetTheme{light ? ViewTheme::dark : ViewTheme::light});
  }
  ImGui::SameLine(0, ui.px(4));
  if (tool_button(ui, "Toolbar/Help", "?", false, "all keys (?)")) requests.show_help = true;
}

void Toolbar::draw(const Ui& ui, const ScreenRect& rect, const Scene& scene,
                   PanelRequests& requests) {
  begin_pane(ui, "toolbar", rect);
  rect_ = rect;
  first_ = true;
  ImGui::SetCursorScreenPos({rect.x0 + ui.px(12), rect.y0 + ui.px(6)});
  head_choices(ui, scene, requests);
  appearance(ui, scene, requests);
  window_buttons(ui, scene, requests);
  height_ = ImGui::GetItemRectMax().y - rect.y0 + ui.px(6);
  end_pane();
}

}  // namespace attnscope
