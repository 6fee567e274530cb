#include "viewer/panels/curve_plot.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "core/heads/head_sketch.h"

namespace attnscope {
namespace {

constexpr float kDot = 3;
/// Dots are left out where points are nearer to each other.
constexpr float kDotsApart = 7;

}  // namespace

std::string curve_number(double number) {
  if (std::isnan(number)) return "\u2013";
  const double size = std::abs(number);
  if (size >= 1000) return fmt::format("{:.0f}", number);
  if (size >= 10) return fmt::format("{:.1f}", number);
  return fmt::format("{:.3f}", number);
}

std::string curve_state(const HeadCurve& curve) {
  if (curve.heads == 0) return "not recorded";
  std::string text = curve.known > 0 && curve.exact == curve.known
                         ? "exact"
                         : fmt::format("from {} rows", SketchCells::kMostCells);
  if (curve.exact > 0 && curve.exact < curve.known) text += fmt::format(", {} exact", curve.exact);
  if (curve.known < curve.heads) text += fmt::format(", {} of {} there", curve.known, curve.heads);
  return text;
}

void draw_curve(const Ui& ui, const ScreenRect& plot, const HeadCurve& curve,
                const std::function<float(size_t)>& place) {
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  draw.AddLine({plot.x0, plot.y1}, {plot.x1, plot.y1}, ui.theme.border);
  const float here = std::round(place(curve.here));
  draw.AddRectFilled({here, plot.y0}, {here + ui.px(1), plot.y1}, faded(ui.theme.query, 0.5f));
  if (!curve.range) return;
  const double low = curve.range->first, high = curve.range->second;
  const double room = high > low ? high - low : std::max(1e-9, std::abs(high)) * 0.5;
  const float air = ui.px(5);
  const auto y_of = [&](double number) {
    const double share = high > low ? (number - low) / room : 0.5;
    return plot.y1 - air - (plot.height() - 2 * air) * static_cast<float>(share);
  };
  ImFont* const digits = ui.fonts.mono;
  const auto end = [&](double number) {
    put_text(ui, digits, plot.x0 - ui.px(6), y_of(number) - digits->FontSize / 2,
             ui.theme.secondary, curve_number(number), Align::right);
  };
  end(high);
  if (high > low && plot.height() >= 2.5f * digits->FontSize) end(low);
  const float apart = curve.points.size() > 1 ? std::abs(place(1) - place(0)) : ui.px(kDotsApart);
  for (size_t i = 0; i < curve.points.size(); ++i) {
    const HeadCurve::Point& point = curve.points[i];
    if (std::isnan(point.number)) continue;
    const ImVec2 at{place(i), y_of(point.number)};
    const bool before = i > 0 && !std::isnan(curve.points[i - 1].number);
    if (before) {
      draw.AddLine({place(i - 1), y_of(curve.points[i - 1].number)}, at, ui.theme.text,
                   ui.px(1.5f));
    }
  }
  for (size_t i = 0; i < curve.points.size(); ++i) {
    const HeadCurve::Point& point = curve.points[i];
    const bool alone = apart >= ui.px(kDotsApart) || i == curve.here;
    if (std::isnan(point.number) || !alone) continue;
    const ImVec2 at{place(i), y_of(point.number)};
    const ImU32 colour = i == curve.here ? ui.theme.query : ui.theme.text;
    draw.AddCircleFilled(at, ui.px(kDot), point.exact ? colour : ui.theme.pane);
    draw.AddCircle(at, ui.px(kDot), colour, 0, ui.px(1.5f));
  }
}

}  // namespace attnscope
