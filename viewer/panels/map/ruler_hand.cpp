#include "viewer/panels/map/ruler_hand.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "viewer/panels/data_marks.h"
#include "viewer/view/query_words.h"

namespace attnscope {
namespace {

int64_t token_count(const RulerAxis& axis) { return axis.tokens.grid->tokens(); }

int64_t whole_place(const RulerAxis& axis, double place) {
  return std::clamp<int64_t>(static_cast<int64_t>(std::floor(place)), 0, token_count(axis) - 1);
}

/// What is seen, with [from, to) along the ruler's axis.
action::SetRect shown_along(const RulerAxis& axis, const ViewTransform& view, double from,
                            double to) {
  MapRect rect = view.rect;
  (axis.vertical ? rect.q0 : rect.k0) = from;
  (axis.vertical ? rect.q1 : rect.k1) = to;
  return {rect};
}

/// Between two pixels of the axis, as far as the ruler (or the map beside it) goes.
ScreenRect stretch(const RulerAxis& axis, const ScreenRect& area, float from, float to) {
  ScreenRect rect = area;
  (axis.vertical ? rect.y0 : rect.x0) = std::clamp(from, axis.low, axis.high);
  (axis.vertical ? rect.y1 : rect.x1) = std::clamp(to, axis.low, axis.high);
  return rect;
}

}  // namespace

void RulerHand::label_blocks(const Ui& ui, const ScreenRect& ruler, const RulerAxis& axis) const {
  if (!axis.side.is_stored()) return;
  const TokenGrid& grid = *axis.tokens.grid;
  const int64_t last = whole_place(axis, std::ceil(axis.last) - 1);
  for (int64_t place = whole_place(axis, axis.first); place <= last;) {
    const IndexRange block = block_around(axis.side, grid, place);
    const auto at = grid.coord(block.begin);
    const std::string name = grid.text_range().contains(place) ? "text"
                             : at                              ? fmt::format("t{}", at->t)
                                                               : "";
    if (!name.empty()) {
      ui.labels.add(name_ + "/" + name,
                    stretch(axis, ruler, axis.at(static_cast<double>(block.begin)),
                            axis.at(static_cast<double>(block.end))));
    }
    place = std::max(block.end, place + 1);
  }
}

/// The span on the ruler and over the map, and which tokens it goes from and to.
void RulerHand::draw_span(const Ui& ui, const ScreenRect& ruler, const RulerAxis& axis,
                          const ViewTransform& view, double from, double to) const {
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const ImU32 colour = axis.vertical ? ui.theme.query_mark : ui.theme.key_mark;
  for (const ScreenRect& area : {ruler, view.area}) {
    const ScreenRect span = stretch(axis, area, axis.at(from), axis.at(to));
    draw.AddRectFilled({span.x0, span.y0}, {span.x1, span.y1}, faded(colour, 0.3f));
  }
  const float ends[] = {std::clamp(axis.at(from), axis.low, axis.high),
                        std::clamp(axis.at(to), axis.low, axis.high)};
  if (axis.vertical) {
    mark_rows(ui, view.area, ends, colour, MarkStroke::solid);
  } else {
    mark_columns(ui, view.area, ends, colour, MarkStroke::solid);
  }
  const auto name = [&](double place) {
    return token_text(axis.tokens, axis.side.token(whole_place(axis, place)));
  };
  tooltip(name(from) + " \u2013 " + name(to - 1e-9));
}

std::optional<Action> RulerHand::take(const Ui& ui, const ScreenRect& ruler, const RulerAxis& axis,
                                      const ViewTransform& view) {
  if (ruler.width() < 1 || ruler.height() < 1) return std::nullopt;
  ImGui::SetCursorScreenPos({ruler.x0, ruler.y0});
  ImGui::InvisibleButton(name_.c_str(), {ruler.width(), ruler.height()});
  mark(ui, "Matrix/" + name_);
  label_blocks(ui, ruler, axis);
  const ImGuiIO& io = ImGui::GetIO();
  const auto count = static_cast<double>(token_count(axis));
  const float pixel = axis.vertical ? io.MousePos.y : io.MousePos.x;
  const double place = std::clamp(axis.place(pixel), 0.0, count);
  if (ImGui::IsItemActivated()) {
    from_ = place;
    dragged_ = done_ = false;
    if (ImGui::IsMouseDoubleClicked(0)) {
      done_ = true;
      return shown_along(axis, view, 0, count);
    }
  }
  const auto [low, high] = std::minmax({from_, place});
  if (ImGui::IsItemActive() && !done_) {
    dragged_ = dragged_ || ImGui::IsMouseDragging(0, ui.px(3));
    if (dragged_ && high > low) draw_span(ui, ruler, axis, view, low, high);
    return std::nullopt;
  }
  const IndexRange block = block_around(axis.side, *axis.tokens.grid, whole_place(axis, place));
  const auto begin = static_cast<double>(block.begin), end = static_cast<double>(block.end);
  if (ImGui::IsItemDeactivated() && !std::exchange(done_, true)) {
    if (dragged_ && high > low) return shown_along(axis, view, low, high);
    if (!dragged_ && ImGui::IsItemHovered()) return shown_along(axis, view, begin, end);
  }
  if (!ImGui::IsItemHovered() || ImGui::IsItemActive()) return std::nullopt;
  if (io.MouseWheel != 0) {
    const double factor = std::pow(kWheelZoom, static_cast<double>(io.MouseWheel));
    return action::ZoomAt{place, place, factor,
                          axis.vertical ? action::MapSide::rows : action::MapSide::keys};
  }
  // What a click would show.
  const ScreenRect shown = stretch(axis, ruler, axis.at(begin), axis.at(end));
  ImGui::GetWindowDrawList()->AddRectFilled({shown.x0, shown.y0}, {shown.x1, shown.y1},
                                            faded(ui.theme.text, 0.12f));
  tooltip(
      "the wheel zooms this side alone, a drag chooses what is seen of it, a click shows one "
      "frame, a double click all");
  return std::nullopt;
}

}  // namespace attnscope
