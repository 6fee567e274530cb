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

/// What is seen, with [from, to) along the ruler's axis: of a split map in the ruler's part of it,
/// as far as the map goes. Of equal scales the other side is zoomed too, about its middle.
action::SetRect shown_along(const RulerAxis& axis, const ViewTransform& view, double from,
                            double to) {
  MapRect rect = view.rect;
  double& begin = axis.vertical ? rect.q0 : rect.k0;
  double& end = axis.vertical ? rect.q1 : rect.k1;
  const double before = end - begin;
  const double low = axis.vertical ? view.area.y0 : view.area.x0;
  const double length = axis.vertical ? view.area.height() : view.area.width();
  const double whole = (to - from) / ((axis.high - axis.low) / length);
  const double first = from - whole * ((axis.low - low) / length);
  begin = std::max(0.0, first);
  end = std::min(static_cast<double>(token_count(axis)), first + whole);
  if (axis.equal) {
    double& other_begin = axis.vertical ? rect.k0 : rect.q0;
    double& other_end = axis.vertical ? rect.k1 : rect.q1;
    const double middle = (other_begin + other_end) / 2;
    const double half = (other_end - other_begin) / 2 * (end - begin) / before;
    other_begin = middle - half;
    other_end = middle + half;
  }
  return {rect};
}

/// By the wheel, about a place of the ruler's axis: its side, of equal scales both.
action::ZoomAt zoomed_at(const RulerAxis& axis, const ViewTransform& view, double place) {
  const double factor = std::pow(kWheelZoom, static_cast<double>(ImGui::GetIO().MouseWheel));
  action::ZoomAt zoom{(view.rect.q0 + view.rect.q1) / 2, (view.rect.k0 + view.rect.k1) / 2, factor};
  (axis.vertical ? zoom.query : zoom.key) = place;
  if (!axis.equal) zoom.side = axis.vertical ? action::MapSide::rows : action::MapSide::keys;
  return zoom;
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

action::SetRect shown_block(const RulerAxis& axis, const ViewTransform& view, int64_t place) {
  const IndexRange block = block_around(axis.side, *axis.tokens.grid, place);
  return shown_along(axis, view, static_cast<double>(block.begin), static_cast<double>(block.end));
}

bool RulerHand::cancel() {
  if (!held_ || !ImGui::IsMouseDown(0)) return false;
  held_ = false;
  done_ = true;
  return true;
}

std::optional<RulerHand::Wish> RulerHand::take(const Ui& ui, const ScreenRect& ruler,
                                               const RulerAxis& axis, const ViewTransform& view) {
  if (ruler.width() < 1 || ruler.height() < 1) return std::nullopt;
  ImGui::SetCursorScreenPos({ruler.x0, ruler.y0});
  ImGui::InvisibleButton(name_.c_str(), {ruler.width(), ruler.height()});
  mark(ui, "Matrix/" + name_);
  label_blocks(ui, ruler, axis);
  const ImGuiIO& io = ImGui::GetIO();
  const auto count = static_cast<double>(token_count(axis));
  const float pixel = axis.vertical ? io.MousePos.y : io.MousePos.x;
  const double place = std::clamp(axis.place(pixel), 0.0, count);
  // Across the ruler a shaky hand may go as far as it likes.
  const auto moved = [&] { return std::abs(pixel - pressed_at_) > ui.px(3); };
  if (ImGui::IsItemActivated()) {
    from_ = place;
    pressed_at_ = pixel;
    dragged_ = done_ = false;
    if (ImGui::IsMouseDoubleClicked(0)) {
      done_ = true;
      return Wish{shown_along(axis, view, 0, count), std::exchange(clicked_, false)};
    }
    clicked_ = false;
  }
  const auto [low, high] = std::minmax({from_, place});
  held_ = ImGui::IsItemActive() && !done_;
  if (held_) {
    dragged_ = dragged_ || moved();
    if (dragged_ && high > low) draw_span(ui, ruler, axis, view, low, high);
    return std::nullopt;
  }
  if (ImGui::IsItemDeactivated() && !std::exchange(done_, true)) {
    // Back at its place a drag chooses nothing.
    if (dragged_ && moved() && high > low) return Wish{shown_along(axis, view, low, high)};
    clicked_ = !dragged_ && ImGui::IsItemHovered();
    if (clicked_) return Wish{shown_block(axis, view, whole_place(axis, from_))};
  }
  if (!ImGui::IsItemHovered() || ImGui::IsItemActive()) return std::nullopt;
  if (io.MouseWheel != 0) return Wish{zoomed_at(axis, view, place)};
  // What a click would show.
  const IndexRange block = block_around(axis.side, *axis.tokens.grid, whole_place(axis, place));
  const ScreenRect shown = stretch(axis, ruler, axis.at(static_cast<double>(block.begin)),
                                   axis.at(static_cast<double>(block.end)));
  ImGui::GetWindowDrawList()->AddRectFilled({shown.x0, shown.y0}, {shown.x1, shown.y1},
                                            faded(ui.theme.text, 0.12f));
  tooltip(
      "the wheel zooms this side alone, a drag chooses what is seen of it, a click shows one "
      "frame, a double click all");
  return std::nullopt;
}

}  // namespace attnscope
