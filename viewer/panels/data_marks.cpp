#include "viewer/panels/data_marks.h"

#include <algorithm>
#include <cmath>

namespace attnscope {
namespace {

constexpr float kDash = 6, kGap = 4;

/// Whole pixels, so that a core is not blended with its edges.
float whole(const Ui& ui, float length) { return std::max(1.0f, std::round(ui.px(length))); }

/// Lines down at `at`, or across: `fill(a0, a1, b0, b1, colour)` has a across the line.
template <class Fill>
void mark_lines(const Ui& ui, float begin, float end, std::span<const float> at, ImU32 colour,
                MarkStroke stroke, const Fill& fill) {
  const float core = whole(ui, 1);
  const bool solid = stroke == MarkStroke::solid;
  const float dash = solid ? end - begin : whole(ui, kDash), gap = whole(ui, kGap);
  const auto pass = [&](float grow, ImU32 ink) {
    for (const float middle : at) {
      const float low = std::round(middle - core / 2);
      for (float from = begin; from < end; from += dash + gap) {
        const float along = solid ? 0 : grow;
        fill(low - grow, low + core + grow, from - along, std::min(from + dash, end) + along, ink);
      }
    }
  };
  // The edge of a line does not hide the core of the next one.
  pass(core, ui.theme.mark_edge);
  pass(0, colour);
}

void fill_ring(ImDrawList& draw, const ScreenRect& outer, float thick, ImU32 colour) {
  const ScreenRect inner{outer.x0 + thick, outer.y0 + thick, outer.x1 - thick, outer.y1 - thick};
  if (inner.x0 >= inner.x1 || inner.y0 >= inner.y1) {
    draw.AddRectFilled({outer.x0, outer.y0}, {outer.x1, outer.y1}, colour);
    return;
  }
  draw.AddRectFilled({outer.x0, outer.y0}, {outer.x1, inner.y0}, colour);
  draw.AddRectFilled({outer.x0, inner.y1}, {outer.x1, outer.y1}, colour);
  draw.AddRectFilled({outer.x0, inner.y0}, {inner.x0, inner.y1}, colour);
  draw.AddRectFilled({inner.x1, inner.y0}, {outer.x1, inner.y1}, colour);
}

}  // namespace

void mark_columns(const Ui& ui, const ScreenRect& area, std::span<const float> at, ImU32 colour,
                  MarkStroke stroke) {
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  mark_lines(ui, area.y0, area.y1, at, colour, stroke,
             [&](float x0, float x1, float y0, float y1, ImU32 ink) {
               draw.AddRectFilled({x0, y0}, {x1, y1}, ink);
             });
}

void mark_rows(const Ui& ui, const ScreenRect& area, std::span<const float> at, ImU32 colour,
               MarkStroke stroke) {
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  mark_lines(ui, area.x0, area.x1, at, colour, stroke,
             [&](float y0, float y1, float x0, float x1, ImU32 ink) {
               draw.AddRectFilled({x0, y0}, {x1, y1}, ink);
             });
}

void mark_frames(const Ui& ui, std::span<const ScreenRect> rects, ImU32 colour, float thick) {
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const float edge = whole(ui, 1), core = whole(ui, thick);
  const auto pass = [&](float grow, float width, ImU32 ink) {
    for (const ScreenRect& r : rects) {
      fill_ring(draw,
                {std::round(r.x0) - grow, std::round(r.y0) - grow, std::round(r.x1) + grow,
                 std::round(r.y1) + grow},
                width, ink);
    }
  };
  pass(edge, core + 2 * edge, ui.theme.mark_edge);
  pass(0, core, colour);
}

}  // namespace attnscope
