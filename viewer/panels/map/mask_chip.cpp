#include "viewer/panels/map/mask_chip.h"

#include <cmath>

#include "viewer/panels/legend.h"
#include "viewer/panels/widgets.h"
#include "viewer/view/mask_text.h"

namespace attnscope {

float draw_mask_chip(const Ui& ui, float right, float y, float width, const Scene& scene,
                     PanelRequests& requests) {
  MaskLook look = scene.chosen.mask;
  if (look.text.empty() || pane_below(scene.chosen) == ViewPane::mask) return 0;
  ImFont* const font = ui.fonts.secondary;
  const std::string name = "mask " + mask_short_name(look.text);
  const float height = ui.px(kSwatchHeight), cross = height;
  const float whole = text_size(font, name).x + ui.px(10) + cross;
  if (whole > width) return 0;
  const float x = std::round(right - whole);
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  draw.AddRectFilled({x, y}, {x + whole, y + height}, ui.theme.raised, ui.px(3));
  const float text_y = y + (height - font->FontSize) / 2;
  const auto button = [&](const char* label, float from, float to, const std::string& text,
                          const char* about) {
    ImGui::SetCursorScreenPos({from, y});
    const bool clicked = ImGui::InvisibleButton(label, {to - from, height});
    mark(ui, label);
    const bool hovered = ImGui::IsItemHovered();
    if (hovered) tooltip(about);
    put_text(ui, font, (from + to) / 2, text_y, hovered ? ui.theme.text : ui.theme.secondary, text,
             Align::centre);
    return clicked;
  };
  if (button("Legend/Mask", x, x + whole - cross, name, "show the mask's pane (Shift+M)")) {
    look.shown = true;
    requests.act(action::SetMask{.look = look, .of_this_head = false});
  }
  if (button("Legend/Mask off", x + whole - cross, x + whole, "\u00d7", "no mask")) {
    requests.act(action::SetMask{.look = {}});
  }
  return whole + ui.px(8);
}

}  // namespace attnscope
