#include "viewer/panels/map/crosshair.h"

#include <algorithm>
#include <cmath>

#include "core/base/number_words.h"
#include "core/products/differences/map_difference.h"
#include "viewer/panels/map/token_lines.h"

namespace attnscope {

namespace {

/// The number that the map shows for the entry: a logit, a weight, or a difference of two.
double shown_value(const Scene& scene, const PointReadout& r) {
  const bool logits = scene.state.product == ViewProduct::logits;
  const auto of = [&](const ProbedEntry& entry) { return logits ? entry.logit : entry.weight; };
  if (!scene.state.against()) return of(*r.entry) * (logits ? 1 : scene.factor);
  const auto a = static_cast<float>(of(*r.entry)), b = static_cast<float>(of(*r.other));
  float difference = 0;
  take_difference(scene.state.other->difference, {&a, 1}, {&b, 1}, {&difference, 1});
  return static_cast<double>(difference) * (logits ? 1 : scene.factor);
}

}  // namespace

void mark_pointed(const Ui& ui, const Scene& scene, const ViewTransform& view) {
  for (const bool keys : {false, true}) {
    const MapPoint& point = scene.readout->point;
    const int64_t token = keys ? point.key : point.query;
    mark_tokens(ui, scene, view, {&token, 1}, keys, MarkStroke::dashed);
  }
}

void draw_crosshair(const Ui& ui, const Scene& scene, const ViewTransform& view) {
  const PointReadout& r = *scene.readout;
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const double query = static_cast<double>(scene.placed.rows->place(r.point.query));
  const double key = static_cast<double>(scene.placed.keys->place(r.point.key));
  const float x0 = view.x(key), x1 = view.x(key + 1);
  const float y0 = view.y(query), y1 = view.y(query + 1);
  const ScreenRect& map = view.area;
  if (x1 <= map.x0 || x0 >= map.x1 || y1 <= map.y0 || y0 >= map.y1) return;
  const float x = std::round((x0 + x1) / 2), y = std::round((y0 + y1) / 2);
  const bool cells = x1 - x0 >= ui.px(8) && y1 - y0 >= ui.px(8);
  const ScreenRect entry{x0, y0, x1, y1};
  if (cells) mark_frames(ui, {&entry, 1}, ui.theme.plain_mark);
  // The magnifier has the number.
  if (!r.entry || scene.magnified) return;
  if (scene.state.against() && !r.other) return;
  const float left = cells ? x0 : x, right = cells ? x1 : x;
  const float above = cells ? y0 : y, below = cells ? y1 : y;
  const double value = shown_value(scene, r);
  const std::string text = number_words(value, 4);
  const ImVec2 size = text_size(ui.fonts.mono, text);
  // Beside the entry, on the side that has room.
  const float gap = ui.px(10);
  float left_edge = right + gap;
  if (left_edge + size.x + ui.px(12) > map.x1) left_edge = left - gap - size.x - ui.px(12);
  float top_edge = below + gap;
  if (top_edge + size.y + ui.px(6) > map.y1) top_edge = above - gap - size.y - ui.px(6);
  draw.AddRectFilled({left_edge, top_edge},
                     {left_edge + size.x + ui.px(12), top_edge + size.y + ui.px(6)}, ui.theme.pane,
                     ui.px(3));
  draw.AddRect({left_edge, top_edge},
               {left_edge + size.x + ui.px(12), top_edge + size.y + ui.px(6)}, ui.theme.border,
               ui.px(3));
  put_text(ui, ui.fonts.mono, left_edge + ui.px(6), top_edge + ui.px(3), ui.theme.text, text);
}

}  // namespace attnscope
