#include "viewer/panels/offset_curves.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/number_words.h"
#include "viewer/panels/widgets.h"

namespace attnscope {
namespace {

struct Curve {
  const char* name;
  const std::vector<double>* values;
};

TrackRange common_range(const std::array<Curve, 3>& curves) {
  std::vector<double> all;
  for (const Curve& curve : curves) {
    all.insert(all.end(), curve.values->begin(), curve.values->end());
  }
  return track_range(all, true);
}

/// "dt ±6".
std::string curve_label(const Curve& curve) {
  return fmt::format("{} \u00b1{}", curve.name, curve.values->size() / 2);
}

/// One curve, its middle at offset 0, beside its label; what it is under the mouse.
void draw_one(const Ui& ui, const ScreenRect& rect, float label_width, const Curve& curve,
              const TrackRange& range) {
  const ScreenRect plot{rect.x0 + label_width, rect.y0, rect.x1, rect.y1};
  const std::vector<double>& values = *curve.values;
  const auto reach = static_cast<int64_t>(values.size() / 2);
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  ImFont* const small = ui.fonts.secondary;
  draw.AddRectFilled({plot.x0, plot.y0}, {plot.x1, plot.y1}, ui.theme.raised);
  const float step = plot.width() / static_cast<float>(values.size());
  const auto x_of = [&](size_t i) { return plot.x0 + (static_cast<float>(i) + 0.5f) * step; };
  const auto y_of = [&](double value) {
    const auto share = static_cast<float>(range.share(value));
    return plot.y1 - ui.px(2) - (plot.height() - ui.px(4)) * share;
  };
  const float middle = std::round(x_of(static_cast<size_t>(reach)));
  draw.AddLine({middle, plot.y0}, {middle, plot.y1}, ui.theme.border);
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(values[i])) continue;
    const ImVec2 at{x_of(i), y_of(values[i])};
    draw.AddRectFilled({at.x - 1, at.y - 1}, {at.x + 1, at.y + 1}, ui.theme.key);
    if (i == 0 || std::isnan(values[i - 1])) continue;
    draw.AddLine({x_of(i - 1), y_of(values[i - 1])}, at, ui.theme.key, ui.px(1));
  }
  put_text(ui, small, rect.x0, (rect.y0 + rect.y1 - small->FontSize) / 2, ui.theme.secondary,
           curve_label(curve));
  ImGui::SetCursorScreenPos({plot.x0, plot.y0});
  ImGui::InvisibleButton(curve.name, {plot.width(), plot.height()});
  mark(ui, std::string("Frames/") + curve.name);
  if (!ImGui::IsItemHovered()) return;
  const auto at = static_cast<int64_t>((ImGui::GetIO().MousePos.x - plot.x0) / step);
  const auto i =
      static_cast<size_t>(std::clamp<int64_t>(at, 0, static_cast<int64_t>(values.size()) - 1));
  draw.AddLine({x_of(i), plot.y0}, {x_of(i), plot.y1}, ui.theme.text);
  const std::string value = std::isnan(values[i]) ? "\u2026" : number_words(values[i]);
  tooltip(fmt::format("mean weight of keys at {} = {}: {}", curve.name,
                      static_cast<int64_t>(i) - reach, value));
}

}  // namespace

void draw_offset_curves(const Ui& ui, const ScreenRect& rect, const HeadTracks& tracks) {
  const std::array<Curve, 3> curves{
      {{"dt", &tracks.by_dt}, {"dy", &tracks.by_dy}, {"dx", &tracks.by_dx}}};
  const TrackRange range = common_range(curves);
  ImFont* const small = ui.fonts.secondary;
  put_fitting(ui, small, rect.x0, rect.y0, rect.width(), ui.theme.secondary, "weight by offset");
  const float line = small->FontSize + ui.px(5);
  if (!range.empty) {
    const std::string ends = number_words(range.low, 2) + " \u2026 " + number_words(range.high, 2);
    put_fitting(ui, small, rect.x0, rect.y1 - small->FontSize, rect.width(), ui.theme.secondary,
                ends);
  }
  const float top = rect.y0 + line, gap = ui.px(5);
  const float height = (rect.y1 - line - top - 2 * gap) / 3;
  if (range.empty || height < ui.px(16)) return;
  float label_width = 0, y = top;
  for (const Curve& curve : curves) {
    label_width = std::max(label_width, text_size(small, curve_label(curve)).x + ui.px(6));
  }
  for (const Curve& curve : curves) {
    draw_one(ui, {rect.x0, y, rect.x1, y + height}, label_width, curve, range);
    y += height + gap;
  }
}

std::string offset_readout(const Scene& scene) {
  if (!scene.readout || !scene.readout->entry || !scene.tracks) return "";
  if (!scene.state.show_frames || scene.readout->on_other || scene.other.shown) return "";
  const auto mean = scene.tracks->mean_at_dt(*scene.queries.grid, scene.readout->point.query,
                                             *scene.keys.grid, scene.readout->point.key);
  const double weight = scene.readout->entry->weight;
  if (!mean || !(*mean > 0) || std::isnan(weight)) return "";
  return number_words(weight / *mean) + " \u00d7 the mean at its dt";
}

}  // namespace attnscope
