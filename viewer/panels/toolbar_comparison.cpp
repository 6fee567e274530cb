#include "viewer/panels/toolbar.h"

#include "viewer/panels/main_menu.h"
#include "viewer/panels/widgets.h"
#include "viewer/view/comparison.h"
#include "viewer/view/view_actions.h"
#include "viewer/view/wanted_tiles.h"

namespace attnscope {
namespace {

/// Of a button with this word.
float word_width(const Ui& ui, const std::string& word) {
  return text_size(ui.fonts.body, word).x + ui.px(17);
}

/// True where a head's map can be compared with A's: it has the same size and the same numbers.
bool is_alike(const Scene& scene, const HeadId& head) {
  const HeadId& own = scene.chosen.head;
  const auto call_of = [&](const HeadId& of) -> const MapSource& {
    return scene.other.picker.calls()[static_cast<size_t>(of.call)];
  };
  const MapGeometry a = scene.tiles.geometry(own), b = scene.tiles.geometry(head);
  return a.rows == b.rows && a.cols == b.cols && call_of(own).kind == call_of(head).kind &&
         call_of(own).weights == call_of(head).weights &&
         call_of(own).logits == call_of(head).logits;
}

/// The words of the differences, as buttons have them.
std::string button_text(Difference how) {
  return how == Difference::off ? "A" : difference_sign(how);
}

}  // namespace

void Toolbar::add_difference_choice(const Ui& ui, const OtherSide& other, const ViewState& state,
                                    PanelRequests& requests, Controls& to) {
  std::vector<Difference> suiting;
  float width = 0;
  for (const Difference how : {Difference::off, Difference::signed_difference, Difference::absolute,
                               Difference::log_ratio}) {
    if (!difference_suits(how, product_quantity(state.product))) continue;
    suiting.push_back(how);
    width += word_width(ui, button_text(how));
  }
  to.push_back({width, 12, [=, &ui, &requests] {
                  for (const Difference how : suiting) {
                    if (how != suiting.front()) ImGui::SameLine(0, ui.px(1));
                    const bool on = other.difference == how;
                    if (tool_button(ui, "Difference/" + std::string(difference_name(how)),
                                    button_text(how), on,
                                    "what the map shows of A against B, entry by entry (X)")) {
                      requests.act(action::SetDifference{how});
                    }
                  }
                }});
}

void Toolbar::add_comparison(const Ui& ui, const Scene& scene, PanelRequests& requests,
                             Controls& to) {
  to.push_back({word_width(ui, "B"), 12, [&ui, &scene, &requests] {
                  const bool on = scene.other.head.has_value();
                  if (!tool_button(ui, "Toolbar/B", "B", on,
                                   "compare with another head; hold B to see it in place of A")) {
                    return;
                  }
                  if (on) {
                    requests.act(action::DropOther{});
                  } else {
                    requests.act(action::SetOther{suggested_other(
                        scene.chosen, scene.picker, scene.other.picker,
                        [&](const HeadId& head) { return is_alike(scene, head); })});
                  }
                }});
}

void Toolbar::add_other(const Ui& ui, const std::vector<AxisChoice>& choices, const Scene& scene,
                        PanelRequests& requests, Controls& to) {
  const std::optional<OtherSide>& other = scene.chosen.other;
  to.push_back({main_menu_width(ui), 0,
                [&ui] {
                  const ImVec2 at = ImGui::GetCursorScreenPos();
                  const ImVec2 size{main_menu_width(ui), ImGui::GetFrameHeight()};
                  ImGui::Dummy(size);
                  put_text(ui, ui.fonts.title, at.x + size.x / 2,
                           at.y + (size.y - ui.fonts.title->FontSize) / 2, ui.theme.side_b, "B",
                           Align::centre);
                },
                true});
  add_head_choices(
      ui, choices, scene.other.picker, other->head, "B",
      [&](const HeadId& head) { requests.act(action::SetOther{head}); }, to);
  add_difference_choice(ui, *other, scene.chosen, requests, to);
  const auto add_switch = [&](const std::string& word, bool on, const std::string& hint, float gap,
                              const Action& off_action, const Action& on_action) {
    to.push_back({word_width(ui, word), gap, [=, &ui, &requests] {
                    if (tool_button(ui, "B/" + word, word, on, hint)) {
                      requests.actions.push_back(on ? off_action : on_action);
                    }
                  }});
  };
  to.push_back({word_width(ui, "Show"), 12, [&ui, &scene, &requests] {
                  if (tool_button(ui, "B/Show", "Show", scene.other.shown,
                                  "B in place of A, as while its key is held (B)")) {
                    requests.show_other = !scene.other.shown;
                  }
                }});
  add_switch("Split", other->split.has_value(), "A left of a line, B right of it", 4,
             action::SetSplitLine{}, action::SetSplitLine{0.5f});
  add_switch("Rows", other->ranked, "rows by their Jensen\u2013Shannon divergence", 4,
             action::ShowRanked{false}, action::ShowRanked{true});
  if (!other->split) return;
  const std::string caption = "locked";
  to.push_back({text_size(ui.fonts.secondary, caption).x, 12, [&ui, caption] {
                  const ImVec2 at = ImGui::GetCursorScreenPos();
                  const ImVec2 size = text_size(ui.fonts.secondary, caption);
                  ImGui::Dummy({size.x, ImGui::GetFrameHeight()});
                  put_text(ui, ui.fonts.secondary, at.x,
                           at.y + (ImGui::GetFrameHeight() - size.y) / 2 + ui.px(1),
                           ui.theme.secondary, caption);
                }});
  const auto add_lock = [&](const std::string& word, action::Lock lock, bool on,
                            const std::string& locked, const std::string& free) {
    add_switch(
        word, on,
        on ? "locked: " + locked + "; a click frees it" : "free: " + free + "; a click locks it",
        lock == action::Lock::zoom ? 6 : 4, action::SetLock{lock, false},
        action::SetLock{lock, true});
  };
  add_lock("Zoom", action::Lock::zoom, other->lock_zoom, "B shows the part of the map that A does",
           "B shows a part of its own");
  add_lock("Range", action::Lock::range, other->lock_range, "B has the ends of A's colours",
           "B has ends of its own");
  add_lock("Cursor", action::Lock::cursor, other->lock_cursor, "B is read where A is read",
           "each is read where the mouse is");
}

}  // namespace attnscope
