#include "viewer/panels/pin_mark.h"

namespace attnscope {

void draw_pin(const Ui& ui, const std::string& pane, float x, float y, int64_t number,
              ImU32 colour) {
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  ImFont* const font = ui.fonts.secondary;
  const float radius = ui.px(5), high = font->FontSize + ui.px(2);
  draw.AddCircle({x, y}, radius, IM_COL32(0, 0, 0, 170), 0, ui.px(3.5f));
  draw.AddCircle({x, y}, radius, colour, 0, ui.px(1.5f));
  // The number on a ground of its own, so that it shows on data of any colour.
  const std::string text = std::to_string(number);
  const float width = text_size(font, text).x + ui.px(6);
  const ImVec2 low{x + radius + ui.px(1), y - radius - high + ui.px(2)};
  draw.AddRectFilled(low, {low.x + width, low.y + high}, colour, ui.px(3));
  put_text(ui, font, low.x + ui.px(3), low.y + ui.px(1), IM_COL32(0, 0, 0, 255), text);
  ui.labels.add(pane + "/Pin " + text, {x - radius, y - radius, x + radius, y + radius});
}

}  // namespace attnscope
