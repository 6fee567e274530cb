#include "viewer/panels/row/volume_box.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace attnscope {
namespace {

/// Pixels between an edge and the middle of its words, and at least between two words.
constexpr float kWordsAway = 14;
constexpr float kWordsApart = 10;
/// A smaller cell is ringed.
constexpr float kSmallCell = 6;

/// The smallest round step that is at least `least`.
int64_t round_step(double least) {
  for (int64_t unit = 1;; unit *= 10) {
    for (const int64_t step : {unit, 2 * unit, 5 * unit}) {
      if (static_cast<double>(step) >= least) return step;
    }
  }
}

VolumePoint between(const VolumePoint& a, const VolumePoint& b, double share) {
  return {a.x + (b.x - a.x) * share, a.y + (b.y - a.y) * share, a.t + (b.t - a.t) * share};
}

}  // namespace

VolumeBox::VolumeBox(const Ui& ui, const ScreenRect& area, const VolumeCamera& camera,
                     const std::array<int64_t, 3>& size)
    : ui_(ui), area_(area), camera_(camera), size_(size), edges_(volume_edges(camera, size)) {}

ImVec2 VolumeBox::at(const VolumePoint& point) const {
  const PanePoint place = camera_.project(point);
  return {area_.x0 + static_cast<float>(place.x), area_.y0 + static_cast<float>(place.y)};
}

void VolumeBox::draw_edges(bool behind) const {
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  for (const VolumeEdge& edge : edges_) {
    if (edge.hidden != behind) continue;
    draw.AddLine(at(edge.from), at(edge.to), faded(ui_.theme.secondary, behind ? 0.35f : 0.7f),
                 ui_.px(1));
  }
}

void VolumeBox::draw_plane(const VolumeSlice& slice) const {
  const auto frames = static_cast<double>(size_[0]), rows = static_cast<double>(size_[1]);
  const auto cols = static_cast<double>(size_[2]);
  const double plane = static_cast<double>(slice.at) + 0.5;
  std::array<VolumePoint, 4> corners{};
  if (slice.axis == VolumeAxis::t) {
    corners = {{{0, 0, plane}, {cols, 0, plane}, {cols, rows, plane}, {0, rows, plane}}};
  } else if (slice.axis == VolumeAxis::y) {
    corners = {{{0, plane, 0}, {cols, plane, 0}, {cols, plane, frames}, {0, plane, frames}}};
  } else {
    corners = {{{plane, 0, 0}, {plane, rows, 0}, {plane, rows, frames}, {plane, 0, frames}}};
  }
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  for (size_t i = 0; i < 4; ++i) {
    draw.AddLine(at(corners[i]), at(corners[(i + 1) % 4]), ui_.theme.text, ui_.px(1));
  }
}

void VolumeBox::draw_axis(VolumeAxis axis) const {
  const VolumeEdge* const edge = labelled_edge(camera_, edges_, axis);
  if (edge == nullptr) return;
  const ImVec2 from = at(edge->from), to = at(edge->to);
  const ImVec2 centre = at({static_cast<double>(size_[2]) / 2, static_cast<double>(size_[1]) / 2,
                            static_cast<double>(size_[0]) / 2});
  const float length = std::hypot(to.x - from.x, to.y - from.y);
  // Away from the volume, across the edge.
  ImVec2 away{(to.y - from.y) / length, (from.x - to.x) / length};
  if (away.x * (from.x - centre.x) + away.y * (from.y - centre.y) < 0) away = {-away.x, -away.y};
  const int64_t extent = size_[static_cast<size_t>(axis)];
  ImFont* const font = ui_.fonts.secondary;
  const std::string_view letter = volume_axis_name(axis);
  const ImVec2 widest = text_size(font, fmt::format("{}{}", letter, extent - 1));
  // Along the edge a word takes what of its box lies in that direction.
  const float room =
      (std::abs(to.x - from.x) * widest.x + std::abs(to.y - from.y) * widest.y) / length +
      ui_.px(kWordsApart);
  const auto cells = static_cast<double>(extent);
  const int64_t step = round_step(static_cast<double>(room) * cells / static_cast<double>(length));
  const float out = ui_.px(kWordsAway) + std::abs(away.x) * widest.x / 4;
  for (int64_t i = 0; i < extent; i += step) {
    const ImVec2 place = at(between(edge->from, edge->to, (static_cast<double>(i) + 0.5) / cells));
    ImGui::GetWindowDrawList()->AddLine(
        place, {place.x + away.x * ui_.px(4), place.y + away.y * ui_.px(4)}, ui_.theme.secondary,
        ui_.px(1));
    put_text(ui_, font, place.x + away.x * out, place.y + away.y * out - font->FontSize / 2,
             ui_.theme.secondary, fmt::format("{}{}", letter, i), Align::centre);
  }
}

void VolumeBox::draw_axes() const {
  for (const VolumeAxis axis : {VolumeAxis::t, VolumeAxis::y, VolumeAxis::x}) draw_axis(axis);
}

void VolumeBox::mark_cell(const LatentCoord& cell, ImU32 colour) const {
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const auto t = static_cast<double>(cell.t), y = static_cast<double>(cell.y);
  const auto x = static_cast<double>(cell.x);
  const ImU32 shadow = IM_COL32(0, 0, 0, 150);
  if (camera_.pixels() < static_cast<double>(ui_.px(kSmallCell))) {
    const ImVec2 middle = at({x + 0.5, y + 0.5, t + 0.5});
    draw.AddCircle(middle, ui_.px(6), shadow, 0, ui_.px(4));
    draw.AddCircle(middle, ui_.px(6), colour, 0, ui_.px(2));
    return;
  }
  const auto corner = [&](int i) { return at({x + (i & 1), y + (i >> 1 & 1), t + (i >> 2 & 1)}); };
  // The corner that is furthest from the eye, whose edges the cell hides.
  int hidden = 0;
  if (!camera_.faces_eye(VolumeAxis::x, true)) hidden |= 1;
  if (!camera_.faces_eye(VolumeAxis::y, true)) hidden |= 2;
  if (!camera_.faces_eye(VolumeAxis::t, true)) hidden |= 4;
  for (const auto& [tint, thick] : {std::pair(shadow, 3.0f), std::pair(colour, 1.5f)}) {
    for (int i = 0; i < 8; ++i) {
      for (const int bit : {1, 2, 4}) {
        if (i == hidden || (i | bit) == hidden) continue;
        if ((i & bit) == 0) draw.AddLine(corner(i), corner(i | bit), tint, ui_.px(thick));
      }
    }
  }
}

}  // namespace attnscope
