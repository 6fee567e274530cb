#include "viewer/panels/legend.h"

#include <algorithm>
#include <cmath>

namespace attnscope {

void draw_legend(const Ui& ui, const ScreenRect& rect, const ColourScale& scale,
                 const std::string& caption, float caption_width) {
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  ImFont* const small = ui.fonts.secondary;
  ImFont* const digits = ui.fonts.mono;
  put_text(ui, small, rect.x0, rect.y0, ui.theme.text, fit_text(small, caption, caption_width));
  const float top = std::round(rect.y0 + ui.px(20));
  const float bottom = top + ui.px(10);
  constexpr int kSteps = 64;
  for (int i = 0; i < kSteps; ++i) {
    const auto edge = [&](int at) {
      return rect.x0 + rect.width() * static_cast<float>(at) / static_cast<float>(kSteps);
    };
    const auto colour = [&](int at) {
      return to_u32(colormap_at(scale.map(), static_cast<double>(at) / kSteps));
    };
    draw.AddRectFilledMultiColor({edge(i), top}, {edge(i + 1), bottom}, colour(i), colour(i + 1),
                                 colour(i + 1), colour(i));
  }
  const double gap = std::min(0.5, static_cast<double>(ui.px(56) / rect.width()));
  float free_from = rect.x0 - ui.px(8);
  for (const ScaleTick& tick : scale.ticks(gap)) {
    const float x = std::round(rect.x0 + rect.width() * static_cast<float>(tick.unit));
    const float width = text_size(digits, tick.label).x;
    const float left = std::clamp(x - width / 2, rect.x0, std::max(rect.x0, rect.x1 - width));
    if (left < free_from) continue;
    free_from = left + width + ui.px(6);
    draw.AddLine({x, bottom}, {x, bottom + ui.px(4)}, ui.theme.secondary);
    put_text(ui, digits, left, bottom + ui.px(5), ui.theme.secondary, tick.label);
  }
}

}  // namespace attnscope
