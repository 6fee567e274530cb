#include "viewer/panels/mask_panel.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "core/base/number_words.h"
#include "core/patterns/mask_pattern.h"
#include "viewer/panels/legend.h"
#include "viewer/view/view_actions.h"
#include "viewer/view/window_place.h"

namespace attnscope {
namespace {

/// The largest width of a line, so that its name and its number do not lie too far apart.
constexpr float kMostWidth = 480;
constexpr float kMaskLine = 26;
/// No mask, and one that keeps everything: the list has one word for both.
constexpr const char* kDense = "dense";
constexpr const char* kKeepsAll = "none";

std::string percent(const std::optional<double>& value) {
  return value ? fmt::format("{:.2f} %", 100 * *value) : "\u2013";
}

std::string progress_text(const HeadMask& mask) {
  if (!mask.quality) return "measuring \u2026";
  if (!mask.all_rows) return fmt::format("{} sampled rows so far", mask.quality->sampled_rows);
  return "all rows";
}

void set_text(const Scene& scene, const std::string& text, bool dragged, PanelRequests& requests) {
  MaskLook look = scene.state.mask;
  // Brushed blocks belong to one mask, whose numbers may change.
  if (mask_pattern_name(text) != mask_pattern_name(look.text)) look.edits.clear();
  look.text = text;
  requests.act(action::SetMask{look, dragged});
}

}  // namespace

/// The pattern by its name; a file that is open is one of the list.
void MaskPanel::draw_choice(const Ui& ui, const ScreenRect& rect, const Scene& scene,
                            PanelRequests& requests) const {
  const std::string& text = scene.state.mask.text;
  std::vector<std::string> names{kDense};
  for (const std::string& name : mask_pattern_names()) {
    if (name != kKeepsAll) names.push_back(name);
  }
  const std::string now = text.empty() || text == kKeepsAll ? kDense : mask_short_name(text);
  auto at = std::find(names.begin(), names.end(), now);
  if (at == names.end()) at = names.insert(names.end(), now);
  ImGui::SetCursorScreenPos({rect.x0, rect.y0});
  const float caption = text_size(ui.fonts.secondary, "Pattern").x + ui.px(6);
  const float room = std::min(140.0f, (rect.width() - caption) / ui.px(1));
  const int taken = choice(ui, "Mask", "Pattern", names, static_cast<int>(at - names.begin()), room,
                           mask_pattern_about);
  if (taken < 0 || names[static_cast<size_t>(taken)] == now) return;
  const std::string& name = names[static_cast<size_t>(taken)];
  set_text(scene, name == kDense ? "" : first_mask_text(name), false, requests);
}

/// Where there is no mask yet: some that are a click away. Gives the y below.
float MaskPanel::draw_first_masks(const Ui& ui, const ScreenRect& rect, const Scene& scene,
                                  PanelRequests& requests) {
  const bool grid = scene.keys.grid != nullptr && scene.keys.grid->has_grid();
  ImGui::SetCursorScreenPos({rect.x0, rect.y0});
  for (const char* const name : {"topk", "sparge", "spatial", "temporal"}) {
    const bool of_grid = parse_mask_pattern(name, "mask").kind < PatternKind::vertical_slash;
    if (of_grid && !grid) continue;
    const float width = text_size(ImGui::GetFont(), name).x + ui.px(12);
    if (ImGui::GetCursorScreenPos().x + width > rect.x1) break;
    if (tool_button(ui, std::string("Mask/Try ") + name, name, false, mask_pattern_about(name))) {
      set_text(scene, first_mask_text(name), false, requests);
    }
    ImGui::SameLine(0, ui.px(4));
  }
  return rect.y0 + ui.px(kMaskLine);
}

/// A field for the mask as the command line takes it: a pattern with its settings, or a file.
void MaskPanel::draw_text(const Ui& ui, const ScreenRect& rect, const Scene& scene,
                          PanelRequests& requests) {
  const std::string& now = scene.state.mask.text;
  if (!typing_) {
    text_.fill(0);
    std::copy_n(now.begin(), std::min(now.size(), text_.size() - 1), text_.begin());
  }
  ImGui::SetCursorScreenPos({rect.x0, rect.y0});
  const bool entered =
      text_field(ui, "Mask/Text", "pattern:key=value,\u2026  FILE.npy  FILE.json", rect.width(),
                 text_.data(), text_.size(), ImGuiInputTextFlags_EnterReturnsTrue);
  typing_ = ImGui::IsItemActive();
  if (!entered) return;
  std::string text = text_.data();
  if (is_mask_file(text)) {
    text = std::filesystem::absolute(text).lexically_normal().string();
  }
  if (text != now) set_text(scene, text, false, requests);
}

float MaskPanel::draw_sliders(const Ui& ui, const ScreenRect& rect, const Scene& scene,
                              PanelRequests& requests) {
  float y = rect.y0;
  ImGui::PushStyleColor(ImGuiCol_SliderGrab, ui.theme.secondary);
  ImGui::PushStyleColor(ImGuiCol_SliderGrabActive, ui.theme.text);
  const float label = ui.px(72);
  // The number stands beside the slider, whose grip would cover it.
  const float digits = text_size(ui.fonts.mono, "0.00000").x + ui.px(8);
  for (MaskParameter each :
       mask_parameters(scene.state.mask.text,
                       scene.keys.grid != nullptr ? *scene.keys.grid : scene.call.keys)) {
    const std::string name = each.name.empty() ? "tokens" : each.name;
    put_text(ui, ui.fonts.secondary, rect.x0, y + ui.px(4), ui.theme.secondary, name);
    ImGui::SetCursorScreenPos({rect.x0 + label, y});
    ImGui::SetNextItemWidth(std::max(ui.px(24), rect.width() - label - digits));
    auto value = static_cast<float>(each.value);
    const ImGuiSliderFlags logarithmic =
        each.whole && each.high <= 64 ? ImGuiSliderFlags_None : ImGuiSliderFlags_Logarithmic;
    const bool moved = ImGui::SliderFloat(
        ("##" + name).c_str(), &value, static_cast<float>(each.low), static_cast<float>(each.high),
        "", logarithmic | ImGuiSliderFlags_AlwaysClamp);
    mark(ui, "Mask/" + name);
    put_text(ui, ui.fonts.mono, rect.x1, y + ui.px(4), ui.theme.text,
             each.whole ? fmt::format("{:.0f}", each.value) : fmt::format("{:.3g}", each.value),
             Align::right);
    y += ui.px(kMaskLine);
    if (!moved) continue;
    each.value = static_cast<double>(each.whole ? std::round(value) : value);
    const std::string text = with_parameter(scene.state.mask.text, each);
    if (text != scene.state.mask.text) set_text(scene, text, true, requests);
  }
  ImGui::PopStyleColor(2);
  return y;
}

/// Buttons: to keep or drop blocks by dragging over the matrix, to take these back, and to colour
/// dropped blocks by the weight that is lost. Gives the y below.
float MaskPanel::draw_tools(const Ui& ui, const ScreenRect& rect, const Scene& scene,
                            PanelRequests& requests) {
  const MaskLook& look = scene.state.mask;
  const auto set = [&](auto change) {
    MaskLook changed = look;
    change(changed);
    requests.act(action::SetMask{std::move(changed)});
  };
  const auto brush = [&](const char* text, MaskBrush what, const char* about) {
    if (!tool_button(ui, std::string("Mask/") + text, text, look.brush == what, about)) return;
    set([&](MaskLook& to) { to.brush = look.brush == what ? MaskBrush::off : what; });
  };
  const bool can = scene.state.order.is_stored() && !scene.other.state;
  const float line = ui.px(kMaskLine);
  put_fitting(ui, ui.fonts.secondary, rect.x0, rect.y0 + ui.px(4), rect.width(), ui.theme.secondary,
              can                 ? "brush"
              : scene.other.state ? "brush: without side B beside it"
                                  : "brush: in the stored order");
  ImGui::SetCursorScreenPos({rect.x0 + ui.px(48), rect.y0});
  if (!can) return rect.y0 + line;
  brush("Keep", MaskBrush::keep, "dragging over the matrix keeps these blocks");
  ImGui::SameLine(0, ui.px(4));
  brush("Drop", MaskBrush::drop, "dragging over the matrix drops these blocks");
  if (!look.edits.empty()) {
    ImGui::SameLine(0, ui.px(12));
    const std::string text = fmt::format("Clear {}", look.edits.size());
    if (tool_button(ui, "Mask/Clear", text, false,
                    "takes back all that was kept or dropped by hand"))
      set([](MaskLook& to) { to.edits.clear(); });
  }
  if (look.text.empty()) return rect.y0 + line;
  if (kWindowHasFiles) {
    ImGui::SameLine(0, ui.px(12));
    if (tool_button(ui, "Mask/Save", "Save", false,
                    "its blocks as attnscope-mask-1.npy, for attnscope mask --mask")) {
      requests.save_mask = true;
    }
  }
  const float width = text_size(ImGui::GetFont(), "Lost").x + ui.px(16);
  const bool beside = item_rect().x1 + ui.px(8) + width <= rect.x1;
  const float y = rect.y0 + (beside ? 0 : line);
  ImGui::SetCursorScreenPos({beside ? rect.x1 - width : rect.x0 + ui.px(48), y});
  if (tool_button(ui, "Mask/Lost", "Lost", look.lost,
                  "colours what is dropped by the weight that is lost there")) {
    set([](MaskLook& to) { to.lost = !to.lost; });
  }
  return y + line;
}

/// Explains the colours of dropped blocks; gives the y below.
float MaskPanel::draw_lost(const Ui& ui, const ScreenRect& rect, const Scene& scene) {
  const HeadMask& mask = *scene.mask;
  const float width = std::min(ui.px(120), rect.width() / 2);
  const float high = rect.y0 + ui.px(3), low = high + ui.px(8);
  std::string text = "lost by a row in a block: \u2026";
  if (mask.request.head.order > 0) {
    text = "in the stored order only";
  } else if (!mask.mass.empty()) {
    constexpr int kSteps = 24;
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    for (int i = 0; i < kSteps; ++i) {
      const float from = rect.x0 + width * static_cast<float>(i) / kSteps;
      draw.AddRectFilled({from, high}, {from + width / kSteps, low},
                         lost_colour(ui.theme, (i + 0.5) / kSteps));
    }
    text = "0 \u2026 " + share_words(most_lost(mask)) + " of a row lost in a block";
  }
  const float x = rect.x0 + (mask.mass.empty() ? 0 : width + ui.px(8));
  put_fitting(ui, ui.fonts.secondary, x, rect.y0, rect.x1 - x, ui.theme.secondary, text);
  return rect.y0 + ui.px(20);
}

/// Gives the y below.
float MaskPanel::draw_numbers(const Ui& ui, const ScreenRect& rect, const Scene& scene) {
  const HeadMask& mask = *scene.mask;
  const MaskQuality quality = mask.quality.value_or(MaskQuality());
  const bool known = mask.quality.has_value();
  std::string oracle = percent(quality.oracle_recall);
  if (quality.oracle_stderr) oracle += fmt::format(" \u00b1 {:.2f}", 100 * *quality.oracle_stderr);
  std::vector<std::pair<std::string, std::string>> lines{
      {"density", known ? percent(quality.density) : "\u2026"},
      {"recall", known ? percent(quality.recall) : "\u2026"},
      {"the worse rows (5 %)", known ? percent(quality.recall_p05) : "\u2026"},
      {"oracle of this density", known ? oracle : "\u2026"},
      {"output error", known ? percent(quality.output_error) : "\u2026"}};
  if (!mask.other.empty()) lines.insert(lines.begin(), {"blocks of", mask.other});
  float y = rect.y0;
  for (const auto& [name, value] : lines) {
    const float digits = text_size(ui.fonts.mono, value).x + ui.px(8);
    put_fitting(ui, ui.fonts.secondary, rect.x0, y, rect.width() - digits, ui.theme.secondary,
                name);
    put_text(ui, ui.fonts.mono, rect.x1, y, ui.theme.text, value, Align::right);
    y += ui.px(20);
  }
  return y;
}

void MaskPanel::draw(const Ui& ui, const ScreenRect& rect, const Scene& scene,
                     PanelRequests& requests) {
  begin_pane(ui, "mask", rect);
  const HeadMask* const mask = scene.mask.get();
  const bool off = scene.state.mask.text.empty();
  const std::string detail = off                      ? ""
                             : mask == nullptr        ? "building \u2026"
                             : !mask->problem.empty() ? ""
                                                      : progress_text(*mask);
  pane_header(ui, rect, {"Mask", detail, ViewPane::mask}, scene.state, requests);
  const float top = rect.y0 + ui.px(kHeaderHeight);
  ImGui::SetCursorScreenPos({rect.x0, top});
  ImGui::BeginChild("below", {rect.width(), std::max(1.0f, rect.y1 - top)}, false,
                    ImGuiWindowFlags_NoNav);
  const ImVec2 origin = ImGui::GetCursorScreenPos();
  const float end =
      draw_below(ui, {rect.x0, origin.y, origin.x + ImGui::GetContentRegionAvail().x, rect.y1},
                 scene, requests);
  // The pane scrolls where it is too low.
  ImGui::SetCursorScreenPos(origin);
  ImGui::Dummy({1, end - origin.y});
  ImGui::EndChild();
  end_pane();
}

/// Draws the pane below its header; gives the y below.
float MaskPanel::draw_below(const Ui& ui, const ScreenRect& rect, const Scene& scene,
                            PanelRequests& requests) {
  const HeadMask* const mask = scene.mask.get();
  const float left = rect.x0 + ui.px(12);
  const float right = std::min(rect.x1 - ui.px(12), left + ui.px(kMostWidth));
  float y = rect.y0 + ui.px(6);
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(ui.px(6), ui.px(2)));
  draw_choice(ui, {left, y, right, rect.y1}, scene, requests);
  y += ui.px(kMaskLine);
  draw_text(ui, {left, y, right, rect.y1}, scene, requests);
  y += ui.px(kMaskLine);
  y = draw_sliders(ui, {left, y, right, rect.y1}, scene, requests);
  y = draw_tools(ui, {left, y, right, rect.y1}, scene, requests) + ui.px(4);
  const bool none = scene.state.mask.text.empty();
  if (none) y = draw_first_masks(ui, {left, y, right, rect.y1}, scene, requests) + ui.px(4);
  ImGui::PopStyleVar();
  if (mask != nullptr && !mask->problem.empty()) {
    const float bottom = std::max(rect.y1, y + problem_height_);
    problem_height_ =
        put_problem(ui, "Mask", {left, y, right, bottom}, "This mask cannot be had", mask->problem);
    return y + problem_height_;
  }
  if (none) {
    return y + put_wrapped(ui, ui.fonts.secondary, left, y, right - left, ui.theme.secondary,
                           "Which entries would a sparse kernel leave out, and what is lost with "
                           "them? Choose a pattern, or keep and drop blocks by hand.");
  }
  if (mask == nullptr) return y;
  if (scene.state.mask.lost) y = draw_lost(ui, {left, y, right, rect.y1}, scene);
  return draw_numbers(ui, {left, y, right, rect.y1}, scene);
}

}  // namespace attnscope
