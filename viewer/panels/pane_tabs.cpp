#include "viewer/panels/pane_tabs.h"

#include <algorithm>

namespace attnscope {
namespace {

struct PaneTab {
  ViewPane pane;
  const char* name;
  const char* about;
};

constexpr PaneTab kTabs[]{{ViewPane::histogram, "Histogram", "how often which values are seen (H)"},
                          {ViewPane::frames, "Frames", "the mass between frames (Shift+F)"},
                          {ViewPane::mask, "Mask", "a sparse mask over the matrix (Shift+M)"},
                          {ViewPane::ranked, "Rows", "the rows that differ most between A and B"}};

bool can_show(ViewPane pane, const Scene& scene) {
  const bool computed = scene.tiles.offers(TracksRequest{});
  switch (pane) {
    case ViewPane::frames:
      return computed;
    case ViewPane::mask:
      return scene.tiles.offers(MaskRequest{});
    case ViewPane::ranked:
      return scene.chosen.other.has_value();
    default:
      return true;
  }
}

void show(ViewPane pane, const Scene& scene, PanelRequests& requests) {
  MaskLook look = scene.chosen.mask;
  switch (pane) {
    case ViewPane::frames:
      return requests.act(action::Switch{&ViewState::show_frames, true});
    case ViewPane::mask:
      look.shown = true;
      return requests.act(action::SetMask{.look = look, .of_this_head = false});
    case ViewPane::ranked:
      return requests.act(action::ShowRanked{true});
    default:
      return requests.act(action::Switch{&ViewState::show_histogram, true});
  }
}

/// How names are written: the letters, the air beside a name, and the share of their room that
/// there is.
struct Lettering {
  ImFont* font;
  float air, share = 1;
};

/// The largest with which all names have room; the smallest are cut where they have none.
Lettering lettering(const Ui& ui, float width, const Scene& scene) {
  Lettering found{};
  for (const Lettering& each :
       {Lettering{ui.fonts.title, ui.px(12)}, Lettering{ui.fonts.body, ui.px(8)},
        Lettering{ui.fonts.secondary, ui.px(5)}}) {
    float all = 0;
    for (const PaneTab& tab : kTabs) {
      if (can_show(tab.pane, scene)) all += text_size(each.font, tab.name).x + 2 * each.air;
    }
    found = each;
    found.share = std::min(1.0f, width / all);
    if (found.share == 1) break;
  }
  return found;
}

}  // namespace

void draw_pane_tabs(const Ui& ui, const ScreenRect& rect, const Scene& scene,
                    PanelRequests& requests) {
  begin_pane(ui, "tabs", {rect.x0, rect.y0, rect.x1, rect.y0 + ui.px(kTabsHeight)});
  const std::optional<ViewPane> shown = pane_below(scene.chosen);
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const auto [font, air, share] = lettering(ui, rect.width(), scene);
  const float y1 = rect.y0 + ui.px(kTabsHeight);
  float x = rect.x0;
  for (const PaneTab& tab : kTabs) {
    if (!can_show(tab.pane, scene)) continue;
    const float width = (text_size(font, tab.name).x + 2 * air) * share;
    ImGui::SetCursorScreenPos({x, rect.y0});
    const bool clicked = ImGui::InvisibleButton(tab.name, {width, ui.px(kTabsHeight)});
    mark(ui, std::string("Tabs/") + tab.name);
    const bool on = tab.pane == shown, hovered = ImGui::IsItemHovered();
    if (hovered) tooltip(tab.about);
    put_fitting(ui, font, x + air, rect.y0 + (ui.px(kTabsHeight) - font->FontSize) / 2,
                width - 2 * air + 1, on || hovered ? ui.theme.text : ui.theme.secondary, tab.name);
    if (on)
      draw.AddRectFilled({x + air - ui.px(4), y1 - ui.px(2)}, {x + width - air + ui.px(4), y1},
                         ui.theme.text);
    if (clicked && !on) show(tab.pane, scene, requests);
    x += width;
  }
  end_pane();
}

}  // namespace attnscope
