#include "viewer/panels/legend.h"

#include <algorithm>
#include <cmath>

#include "core/base/number_words.h"
#include "viewer/panels/widgets.h"

namespace attnscope {
namespace {

constexpr float kSwatchSide = 12;
constexpr float kHatchStep = 6;

/// True where some of the evicted entries are in the part of the map.
bool is_seen(const EvictedKeys& evicted, const MapRect& rect) {
  const auto overlap = [](IndexRange range, double low, double high) {
    return static_cast<double>(range.begin) < high && low < static_cast<double>(range.end);
  };
  return overlap(evicted.queries, rect.q0, rect.q1) && overlap(evicted.keys, rect.k0, rect.k1);
}

/// Ticks of a bar of `width` pixels that are as far apart as their widest label needs.
std::vector<ScaleTick> roomy_ticks(const Ui& ui, const ColourScale& scale, float width) {
  const auto ticks = [&](float room) {
    return scale.ticks(std::min(0.5, static_cast<double>(room / width)));
  };
  const float room = ui.px(56);
  std::vector<ScaleTick> found = ticks(room);
  float widest = 0;
  for (const ScaleTick& each : found) {
    widest = std::max(widest, text_size(ui.fonts.mono, each.label).x + ui.px(8));
  }
  return widest > room ? ticks(widest) : found;
}

/// A triangle that the bar goes on in, and what it stands for.
void draw_end(const Ui& ui, const ScreenRect& bar, const ColourScale& scale, double share,
              bool high) {
  if (share <= 0) return;
  const float edge = high ? bar.x1 : bar.x0;
  const float tip = edge + (high ? ui.px(8) : -ui.px(8));
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  draw.AddTriangleFilled({edge, bar.y0}, {tip, (bar.y0 + bar.y1) / 2}, {edge, bar.y1},
                         to_u32(colormap_at(scale.map(), high ? 1 : 0)));
  const ScreenRect seen{std::min(edge, tip), bar.y0, std::max(edge, tip), bar.y1};
  ui.labels.add(high ? "Legend/Above" : "Legend/Below", seen);
  if (!ImGui::IsMouseHoveringRect({seen.x0, seen.y0}, {seen.x1, seen.y1})) return;
  const double end = high ? scale.range().high : scale.range().low;
  tooltip(share_words(share) + " of what is seen is " + (high ? "above " : "below ") +
          number_words(end) + " and has this colour");
}

/// The colours below a caption; returns where.
ScreenRect draw_bar(const Ui& ui, const ScreenRect& rect, Colormap map) {
  const float top = std::round(rect.y0 + ui.px(20));
  const ScreenRect bar{rect.x0, top, rect.x1, top + ui.px(10)};
  constexpr int kSteps = 64;
  for (int i = 0; i < kSteps; ++i) {
    const auto edge = [&](int at) {
      return bar.x0 + bar.width() * static_cast<float>(at) / static_cast<float>(kSteps);
    };
    const auto colour = [&](int at) {
      return to_u32(colormap_at(map, static_cast<double>(at) / kSteps));
    };
    ImGui::GetWindowDrawList()->AddRectFilledMultiColor({edge(i), bar.y0}, {edge(i + 1), bar.y1},
                                                        colour(i), colour(i + 1), colour(i + 1),
                                                        colour(i));
  }
  return bar;
}

}  // namespace

void draw_hatch(const Ui& ui, ImDrawList& draw, const ScreenRect& rect, float from) {
  draw.PushClipRect({rect.x0, rect.y0}, {rect.x1, rect.y1}, true);
  const float side = rect.height(), step = ui.px(kHatchStep);
  const float first = from + std::floor((rect.x0 - side - from) / step) * step;
  for (float x = first; x < rect.x1; x += step) {
    draw.AddLine({x, rect.y1}, {x + side, rect.y0}, ui.theme.hatch, ui.px(2));
  }
  draw.PopClipRect();
}

void draw_dots(const Ui& ui, ImDrawList& draw, ImVec2 low, float width, float height) {
  for (float y = ui.px(3); y < height; y += ui.px(6)) {
    for (float x = ui.px(3); x < width; x += ui.px(6)) {
      const ImVec2 at{std::floor(low.x + x), std::floor(low.y + y)};
      draw.AddRectFilled(at, {at.x + ui.px(1), at.y + ui.px(1)}, ui.theme.masked_dot);
    }
  }
}

void draw_ticks(const Ui& ui, const ColourScale& scale, float x0, float x1, float y, float tick) {
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  ImFont* const digits = ui.fonts.mono;
  float free_from = x0 - ui.px(8);
  for (const ScaleTick& each : roomy_ticks(ui, scale, x1 - x0)) {
    const float x = std::round(x0 + (x1 - x0) * static_cast<float>(each.unit));
    const float width = text_size(digits, each.label).x;
    // Labels at the ends are moved inwards, where another may stand.
    const float left = std::clamp(x - width / 2, x0, std::max(x0, x1 - width));
    if (left < free_from) continue;
    free_from = left + width + ui.px(6);
    if (tick > 0) draw.AddLine({x, y}, {x, y + tick}, ui.theme.secondary);
    put_text(ui, digits, left, y + tick + ui.px(1), ui.theme.secondary, each.label);
  }
}

void draw_legend(const Ui& ui, const ScreenRect& rect, const ColourScale& scale,
                 const std::string& caption, float caption_width, const std::string& nothing) {
  draw_legend(ui, rect, scale, {}, caption, caption_width, nothing);
}

void draw_legend(const Ui& ui, const ScreenRect& rect, const ColourScale& scale,
                 const ValueHistogram::Beyond& beyond, const std::string& caption,
                 float caption_width, const std::string& nothing) {
  if (scale.is_of_nothing()) {
    draw_no_legend(ui, rect, caption, caption_width, "nothing to scale: " + nothing);
    return;
  }
  put_fitting(ui, ui.fonts.secondary, rect.x0, rect.y0, caption_width, ui.theme.text, caption);
  const ScreenRect bar = draw_bar(ui, rect, scale.map());
  draw_ticks(ui, scale, bar.x0, bar.x1, bar.y1, ui.px(4));
  draw_end(ui, bar, scale, beyond.below, false);
  draw_end(ui, bar, scale, beyond.above, true);
}

void draw_range_legend(const Ui& ui, const ScreenRect& rect, Colormap map,
                       const std::string& caption, float caption_width,
                       const std::array<std::string, 2>& ends) {
  ImFont* const small = ui.fonts.secondary;
  put_fitting(ui, small, rect.x0, rect.y0, caption_width, ui.theme.text, caption);
  const ScreenRect bar = draw_bar(ui, rect, map);
  const float y = bar.y1 + ui.px(5);
  put_text(ui, small, bar.x0, y, ui.theme.secondary, ends[0]);
  const float width = text_size(small, ends[1]).x;
  if (text_size(small, ends[0]).x + width + ui.px(8) > bar.width()) return;
  put_text(ui, small, bar.x1, y, ui.theme.secondary, ends[1], Align::right);
}

void draw_no_legend(const Ui& ui, const ScreenRect& rect, const std::string& caption,
                    float caption_width, const std::string& why) {
  ImFont* const small = ui.fonts.secondary;
  put_fitting(ui, small, rect.x0, rect.y0, caption_width, ui.theme.text, caption);
  put_fitting(ui, small, rect.x0, std::round(rect.y0 + ui.px(20)), caption_width,
              ui.theme.secondary, why);
}

ImU32 dropped_colour(const Theme& theme) { return faded(theme.window, 0.72f); }

ImU32 lost_colour(const Theme& theme, double share) {
  // The square root shows small losses beside great ones.
  const auto part = static_cast<float>(std::sqrt(std::clamp(share, 0.0, 1.0)));
  const ImVec4 veil = ImGui::ColorConvertU32ToFloat4(theme.window);
  const ImVec4 lost = ImGui::ColorConvertU32ToFloat4(theme.problem);
  const auto mix = [&](float a, float b) { return a + (b - a) * part; };
  return ImGui::ColorConvertFloat4ToU32(
      {mix(veil.x, lost.x), mix(veil.y, lost.y), mix(veil.z, lost.z), 0.82f});
}

SeenSpecials seen_specials(const Scene& scene) {
  const ValueHistogram& seen = scene.histogram;
  const bool octaves = !(seen.against() && is_signed(seen.against()->how));
  const bool zeros = seen.quantity() == Quantity::weights && octaves && seen.zeros() > 0;
  const MapRect& rect = scene.state.rect;
  const bool evicted = std::any_of(scene.call.evicted.begin(), scene.call.evicted.end(),
                                   [&](const EvictedKeys& each) { return is_seen(each, rect); });
  return {zeros && (scene.scale.kind() == ScaleKind::log2 || scene.scale.is_of_nothing()),
          seen.masked() > 0, seen.missing() > 0, evicted, false};
}

void draw_swatches(const Ui& ui, float x, float y, float width, const SeenSpecials& seen) {
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  ImFont* const small = ui.fonts.secondary;
  const float right = x + width, side = ui.px(kSwatchSide);
  const auto swatch = [&](ImU32 ground, const std::string& text, auto pattern) {
    if (x + side + ui.px(6) + text_size(small, text).x > right) return;
    const ImVec2 low{std::round(x), std::round(y + ui.px(2))};
    draw.AddRectFilled(low, {low.x + side, low.y + side}, ground);
    pattern(low);
    draw.AddRect(low, {low.x + side, low.y + side}, ui.theme.border);
    put_text(ui, small, x + side + ui.px(6), y, ui.theme.secondary, text);
    x += side + ui.px(22) + text_size(small, text).x;
  };
  const auto hatch = [&](ImVec2 low) {
    draw_hatch(ui, draw, {low.x, low.y, low.x + side, low.y + side}, low.x - side);
  };
  if (seen.zeros) swatch(ui.theme.nothing, "0", [](ImVec2) {});
  if (seen.masked) {
    swatch(ui.theme.masked, "masked", [&](ImVec2 low) { draw_dots(ui, draw, low, side, side); });
  }
  if (seen.missing) {
    swatch(ui.theme.nothing, "not in the file", hatch);
  }
  if (seen.evicted) {
    swatch(ui.theme.masked, "evicted", hatch);
  }
  if (seen.dropped) {
    // Data under the veil: half of the swatch as it is, half of it as the mask leaves it.
    swatch(ui.theme.text, "dropped by the mask", [&](ImVec2 low) {
      draw.AddRectFilled({low.x + side / 2, low.y}, {low.x + side, low.y + side},
                         dropped_colour(ui.theme));
    });
  }
}

std::string nothing_text(const SeenSpecials& seen) {
  if (seen.masked) return seen.zeros ? "every value is 0 or masked" : "all of it is masked";
  if (seen.evicted) return "every value is 0 or evicted";
  if (seen.missing) return seen.zeros ? "every stored value is 0" : "the file has none of it";
  return "every value is 0";
}

}  // namespace attnscope
