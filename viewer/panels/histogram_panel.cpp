#include "viewer/panels/histogram_panel.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/base/error.h"
#include "core/base/number_words.h"
#include "viewer/panels/legend.h"
#include "viewer/settings/script_arguments.h"
#include "viewer/view/view_actions.h"

namespace attnscope {
namespace {

/// Below the bars: the marks and the axis, all that stands there, and why a typed end is none.
constexpr float kTicks = 26, kBelow = 48, kProblem = 16;

/// The button for the range of all that is seen.
constexpr const char* kWhole = "Min\u2013max";

/// Weights and their sizes' differences spread over octaves.
bool has_log_axis(const ValueHistogram& h) {
  return h.quantity() == Quantity::weights && !(h.against() && is_signed(h.against()->how));
}

/// Values that something was counted for, and the ends of the colours, with a little air.
ValueRange axis_range(const Scene& scene) {
  const ValueHistogram& h = scene.histogram;
  double low = scene.scale.range().low, high = scene.scale.range().high;
  for (size_t i = 0; i < h.counts().size(); ++i) {
    if (h.counts()[i] <= 0) continue;
    low = std::min(low, h.edge(i) * scene.factor);
    high = std::max(high, h.edge(i + 1) * scene.factor);
  }
  if (has_log_axis(h)) return {std::max(low / 2, 1e-30), high * 2};
  const double air = (high - low) * 0.05;
  return {low - air, high + air};
}

float place(const ScreenRect& plot, const ColourScale& axis, double value) {
  const double unit = std::clamp(axis.unit(value), 0.0, 1.0);
  return plot.x0 + plot.width() * static_cast<float>(unit);
}

}  // namespace

void HistogramPanel::draw_bars(const Ui& ui, const ScreenRect& plot, const Scene& scene,
                               const ColourScale& axis) const {
  const ValueHistogram& h = scene.histogram;
  const int columns = std::max(1, static_cast<int>(plot.width() / ui.px(3)));
  std::vector<double> counts(static_cast<size_t>(columns));
  for (size_t i = 0; i < h.counts().size(); ++i) {
    if (h.counts()[i] <= 0) continue;
    // A bin may be wider than a column: it is shared out evenly.
    const auto at = [&](size_t edge) {
      return std::clamp(axis.unit(h.edge(edge) * scene.factor), 0.0, 1.0) * columns;
    };
    const double from = at(i), to = std::max(at(i + 1), from + 1e-9);
    const int last = std::min(columns - 1, static_cast<int>(to));
    for (int c = std::min(columns - 1, static_cast<int>(from)); c <= last; ++c) {
      const double part = std::min<double>(c + 1, to) - std::max<double>(c, from);
      if (part > 0) counts[static_cast<size_t>(c)] += h.counts()[i] * part / (to - from);
    }
  }
  const double most = std::max(1.0, *std::max_element(counts.begin(), counts.end()));
  // From one entry to the most, by the logarithm.
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  for (int c = 0; c < columns; ++c) {
    const double count = counts[static_cast<size_t>(c)];
    if (count <= 0) continue;
    const double share = (std::log10(std::max(count, 1.0)) + 0.15) / (std::log10(most) + 0.15);
    const float x = plot.x0 + plot.width() * static_cast<float>(c) / static_cast<float>(columns);
    const float y = plot.y1 - plot.height() * static_cast<float>(std::min(1.0, share));
    const double value = axis.value_at((c + 0.5) / columns);
    draw.AddRectFilled({std::round(x), std::round(y)}, {std::round(x) + ui.px(2), plot.y1},
                       to_u32(scene.scale.colour(value)));
    // Pale bars on a light ground, and dark ones on a dark ground, are seen by their ends.
    draw.AddRectFilled({std::round(x), std::round(y)},
                       {std::round(x) + ui.px(2), std::round(y) + ui.px(1)}, ui.theme.secondary);
  }
}

void HistogramPanel::drag_ends(const Ui& ui, const ScreenRect& plot, const Scene& scene,
                               const ColourScale& axis, PanelRequests& requests) {
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const ValueRange range = scene.scale.range();
  for (int end = 0; end < 2; ++end) {
    const float x = std::round(place(plot, axis, end == 0 ? range.low : range.high));
    const float half = ui.px(6);
    ImGui::SetCursorScreenPos({x - half, plot.y0});
    ImGui::PushID(end);
    ImGui::InvisibleButton("end", {2 * half, plot.height() + ui.px(10)});
    ImGui::PopID();
    mark(ui, end == 0 ? "Histogram/Black" : "Histogram/White");
    const bool held = ImGui::IsItemActive();
    if (held) dragged_ = end;
    const bool bright = held || ImGui::IsItemHovered();
    if (bright) ImGui::SetMouseCursor(ImGuiMouseCursor_ResizeEW);
    const ImU32 colour = bright ? ui.theme.text : ui.theme.secondary;
    draw.AddRectFilled({x, plot.y0}, {x + ui.px(1), plot.y1 + ui.px(2)}, colour);
    draw.AddTriangleFilled({x - ui.px(5), plot.y1 + ui.px(9)}, {x + ui.px(6), plot.y1 + ui.px(9)},
                           {x + ui.px(0.5f), plot.y1 + ui.px(1)}, colour);
    if (!held || ImGui::GetIO().MouseDelta.x == 0) continue;
    const double unit = static_cast<double>((ImGui::GetIO().MousePos.x - plot.x0) / plot.width());
    const double value = axis.value_at(std::clamp(unit, 0.0, 1.0));
    ColourRange wanted{false, range.low, range.high};
    (end == 0 ? wanted.low : wanted.high) = value;
    // The ends do not pass each other.
    if (wanted.low < wanted.high) requests.act(action::SetRange{wanted});
  }
  if (!ImGui::IsMouseDown(0)) dragged_ = -1;
}

void HistogramPanel::take_typed(const Scene& scene, PanelRequests& requests) {
  const ValueRange range = scene.scale.range();
  ColourRange wanted{false, range.low, range.high};
  try {
    (typed_ == 0 ? wanted.low : wanted.high) = parse_script_number("range", text_.data());
  } catch (const Error&) {
    typed_problem_ = "expected a number, as 0.001 or 1e-3";
    return;
  }
  if (!(wanted.low < wanted.high)) {
    typed_problem_ = typed_ == 0 ? "expected less than " + number_words(range.high)
                                 : "expected more than " + number_words(range.low);
    return;
  }
  const bool against = scene.state.against().has_value();
  if (!against && !range_suits(wanted, scene.state.scale)) {
    typed_problem_ = "a log scale needs an end above 0, a sqrt scale one of 0 or more";
    return;
  }
  requests.act(action::SetRange{wanted});
  typed_ = -1;
}

void HistogramPanel::type_end(const Ui& ui, const ScreenRect& place, const Scene& scene,
                              PanelRequests& requests) {
  const bool opens = std::exchange(opens_, false);
  ImGui::SetCursorScreenPos({place.x0, place.y0});
  if (opens) {
    ImGui::SetKeyboardFocusHere();
    requests.draw_again = true;  // it has the keys in the next frame
  }
  ImGui::PushFont(ui.fonts.mono);
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(ui.px(4), ui.px(1)));
  const std::string before = text_.data();
  const bool entered =
      text_field(ui, "Histogram/Field", "", place.width(), text_.data(), text_.size(),
                 ImGuiInputTextFlags_EnterReturnsTrue | ImGuiInputTextFlags_AutoSelectAll);
  const bool left = ImGui::IsItemDeactivated();
  ImGui::PopStyleVar();
  ImGui::PopFont();
  if (before != text_.data()) typed_problem_.clear();
  if (entered) {
    take_typed(scene, requests);
    opens_ = typed_ >= 0;
    requests.draw_again = true;
  } else if (left) {
    typed_ = -1;
  }
}

void HistogramPanel::draw_ends(const Ui& ui, const ScreenRect& plot, const Scene& scene,
                               const ColourScale& axis, PanelRequests& requests) {
  ImFont* const font = ui.fonts.mono;
  const ValueRange range = scene.scale.range();
  const std::string numbers[2]{number_words(range.low), number_words(range.high)};
  const float air = ui.px(5), height = font->FontSize + ui.px(4);
  float widths[2], lefts[2];
  for (int end = 0; end < 2; ++end) {
    widths[end] = text_size(font, numbers[end]).x + 2 * air;
    if (end == typed_) widths[end] = std::max(widths[end], ui.px(88));
    const float x = place(plot, axis, end == 0 ? range.low : range.high);
    lefts[end] = std::clamp(x - widths[end] / 2, plot.x0, std::max(plot.x0, plot.x1 - widths[end]));
  }
  // Two that would touch move apart, as far as there is room.
  const float overlap = lefts[0] + widths[0] + ui.px(4) - lefts[1];
  if (overlap > 0) {
    lefts[1] = std::min(lefts[1] + overlap, plot.x1 - widths[1]);
    lefts[0] = std::max(plot.x0, std::min(lefts[0], lefts[1] - ui.px(4) - widths[0]));
  }
  for (int end = 0; end < 2; ++end) {
    const ScreenRect rect{lefts[end], plot.y1 + ui.px(kTicks), lefts[end] + widths[end],
                          plot.y1 + ui.px(kTicks) + height};
    if (end == typed_) {
      type_end(ui, rect, scene, requests);
      continue;
    }
    ImGui::SetCursorScreenPos({rect.x0, rect.y0});
    ImGui::PushID(end);
    const bool clicked = ImGui::InvisibleButton("number", {rect.width(), height});
    ImGui::PopID();
    mark(ui, end == 0 ? "Histogram/Low" : "Histogram/High");
    const bool hovered = ImGui::IsItemHovered();
    if (hovered) tooltip("click: type another end of the colours");
    ImGui::GetWindowDrawList()->AddRectFilled({rect.x0, rect.y0}, {rect.x1, rect.y1},
                                              hovered ? ui.theme.hovered : ui.theme.raised,
                                              ui.px(3));
    put_text(ui, font, rect.x0 + air, rect.y0 + ui.px(2), ui.theme.text, numbers[end]);
    if (!clicked) continue;
    typed_ = end;
    opens_ = requests.draw_again = true;
    typed_problem_.clear();
    text_.fill(0);
    std::copy_n(numbers[end].begin(), std::min(numbers[end].size(), text_.size() - 1),
                text_.begin());
  }
  if (typed_ < 0 || typed_problem_.empty()) return;
  put_fitting(ui, ui.fonts.secondary, plot.x0, plot.y1 + ui.px(kTicks) + height + ui.px(1),
              plot.width(), ui.theme.problem, typed_problem_);
}

/// Why there are no bars.
void HistogramPanel::draw_nothing(const Ui& ui, const ScreenRect& plot, const Scene& scene) const {
  if (!scene.tiles_problem.empty()) {
    put_problem(ui, "Histogram", plot, "There are no values", scene.tiles_problem);
    return;
  }
  const bool none = scene.histogram.has_nothing_to_scale();
  put_text(ui, ui.fonts.secondary, plot.x0, plot.y0, ui.theme.secondary,
           none ? nothing_text(seen_specials(scene)) : "computing \u2026");
}

void HistogramPanel::draw(const Ui& ui, const ScreenRect& rect, const Scene& scene,
                          PanelRequests& requests) {
  begin_pane(ui, "histogram", rect);
  const ColourRange& chosen = scene.state.against() ? scene.state.other->range : scene.state.range;
  const bool automatic = chosen.automatic && !chosen.whole;
  const ValueHistogram& h = scene.histogram;
  std::string detail;
  if (!h.empty()) {
    const std::string& rounding = scene.call.rounding;
    const std::string known = rounding.empty() ? "exact" : rounding;
    detail = "seen, " + (h.exact() ? known : "sampled") + " \u00b7 log count";
  }
  ImFont* const small = ui.fonts.secondary;
  const float title = text_size(ui.fonts.title, "Histogram").x + ui.px(24);
  float button = text_size(small, "Auto").x + ui.px(24);
  // Where there is no room for it, the key and the palette do the same.
  const float whole = text_size(small, kWhole).x + ui.px(24);
  const bool has_whole = rect.width() >= title + button + whole;
  if (has_whole) button += whole;
  pane_header(ui, rect, {"Histogram", detail, ViewPane::histogram, -1, button}, scene.state,
              requests);
  ImGui::PushFont(ui.fonts.secondary);
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(ui.px(8), ui.px(2)));
  ImGui::SetCursorScreenPos(
      {rect.x1 - ui.px(24) - text_size(ui.fonts.secondary, "Auto").x, rect.y0 + ui.px(4)});
  if (tool_button(ui, "Histogram/Auto", "Auto", automatic, "colours where the mass is")) {
    const ValueRange now = scene.scale.range();
    requests.act(action::SetRange{{!automatic, now.low, now.high}});
  }
  if (has_whole) {
    ImGui::SetCursorScreenPos(
        {rect.x1 - ui.px(24) - text_size(ui.fonts.secondary, "Auto").x - whole,
         rect.y0 + ui.px(4)});
    if (tool_button(ui, "Histogram/Min-max", kWhole, chosen.whole,
                    "colours from the least to the greatest value that is seen")) {
      requests.act(action::SetRange{{true, 0, 0, !chosen.whole}});
    }
  }
  ImGui::PopStyleVar();
  ImGui::PopFont();
  const bool tells = typed_ >= 0 && !typed_problem_.empty();
  const ScreenRect plot{rect.x0 + ui.px(12), rect.y0 + ui.px(kHeaderHeight + 12),
                        rect.x1 - ui.px(12), rect.y1 - ui.px(tells ? kBelow + kProblem : kBelow)};
  if (plot.height() < ui.px(8) || h.empty()) {
    if (h.empty()) draw_nothing(ui, plot, scene);
    end_pane();
    return;
  }
  if (dragged_ < 0) axis_range_ = axis_range(scene);
  const ScaleKind kind = has_log_axis(h) ? ScaleKind::log2 : ScaleKind::linear;
  const ColourScale axis(scene.scale.map(), kind, axis_range_);
  draw_bars(ui, plot, scene, axis);
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  draw.AddLine({plot.x0, plot.y1}, {plot.x1, plot.y1}, ui.theme.border);
  draw_ticks(ui, axis, plot.x0, plot.x1, plot.y1 + ui.px(10), 0);
  drag_ends(ui, plot, scene, axis, requests);
  draw_ends(ui, plot, scene, axis, requests);
  end_pane();
}

}  // namespace attnscope
