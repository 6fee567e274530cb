#include "viewer/panels/ranked_panel.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "core/base/number_words.h"
#include "core/products/differences/head_difference.h"
#include "viewer/view/view_actions.h"

namespace attnscope {
namespace {

/// Rows that are listed; more are better found in the map.
constexpr size_t kListed = 200;
constexpr float kLine = 22;
/// Of the map, what a click shows around a row at least.
constexpr double kShownRows = 32;

/// The row of a query in the middle, all keys that were seen before.
MapRect rect_around(const Scene& scene, int64_t query) {
  const MapRect& now = scene.state.rect;
  const int64_t row = scene.placed.rows->place(query);
  const double rows = std::min(now.q1 - now.q0, kShownRows);
  const double middle = static_cast<double>(row) + 0.5;
  return {middle - rows / 2, middle + rows / 2, now.k0, now.k1};
}

std::string progress_text(const RowDivergence& of) {
  return of.exact ? fmt::format("all {} rows", of.rows.size())
                  : fmt::format("{} of {} rows so far", of.computed, of.rows.size());
}

}  // namespace

void RankedPanel::rank(const Scene& scene) {
  // While B is seen in place of A, nothing is compared with it.
  if (of_ == scene.other.divergence || scene.other.shown) return;
  of_ = scene.other.divergence;
  order_.clear();
  largest_ = mean_ = 0;
  if (!of_) return;
  order_ = ranked_rows(of_->rows, kListed);
  double count = 0;
  for (const double each : of_->rows) {
    if (std::isnan(each)) continue;
    mean_ += each;
    count += 1;
  }
  if (count > 0) mean_ /= count;
  if (!order_.empty()) largest_ = of_->rows[static_cast<size_t>(order_.front())];
}

void RankedPanel::draw_rows(const Ui& ui, const ScreenRect& area, const Scene& scene,
                            PanelRequests& requests) const {
  ImGui::SetCursorScreenPos({area.x0, area.y0});
  ImGui::BeginChild("rows", {area.width(), area.height()}, false, ImGuiWindowFlags_NoNav);
  const float line = ui.px(kLine);
  const float width = ImGui::GetContentRegionAvail().x;
  const ImVec2 origin = ImGui::GetCursorScreenPos();
  ImGui::Dummy({width, line * static_cast<float>(order_.size())});
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const auto first = static_cast<size_t>(std::max(0.0f, ImGui::GetScrollY() / line));
  const auto end = std::min(order_.size(), first + static_cast<size_t>(area.height() / line) + 2);
  ImFont* const small = ui.fonts.secondary;
  const float bar = origin.x + width * 0.62f;
  for (size_t i = first; i < end; ++i) {
    const int64_t row = order_[i];
    const double value = of_->rows[static_cast<size_t>(row)];
    const float y = origin.y + static_cast<float>(i) * line;
    ImGui::SetCursorScreenPos({origin.x, y});
    ImGui::PushID(static_cast<int>(i));
    const bool clicked = ImGui::InvisibleButton("row", {width, line});
    ImGui::PopID();
    mark(ui, fmt::format("Rows/{}", i));
    const bool picked = scene.state.query && scene.state.query->tokens.front() == row;
    if (ImGui::IsItemHovered() || picked) {
      draw.AddRectFilled({origin.x, y}, {origin.x + width, y + line}, ui.theme.raised, ui.px(3));
    }
    put_fitting(ui, small, origin.x + ui.px(4), y + ui.px(3), bar - origin.x - ui.px(70),
                picked ? ui.theme.query : ui.theme.text, token_text(scene.queries, row));
    put_text(ui, ui.fonts.mono, bar - ui.px(8), y + ui.px(3), ui.theme.secondary,
             number_words(value), Align::right);
    const float share = largest_ > 0 ? static_cast<float>(value / largest_) : 0;
    draw.AddRectFilled({bar, y + ui.px(6)},
                       {bar + (origin.x + width - bar) * share, y + line - ui.px(6)},
                       ui.theme.side_b);
    if (!clicked) continue;
    if (scene.state.reverse) requests.act(action::SetReverse{false});
    requests.act(action::PickQuery{{{row}}});
    requests.act(action::SetRect{rect_around(scene, row)});
  }
  ImGui::EndChild();
}

void RankedPanel::draw(const Ui& ui, const ScreenRect& rect, const Scene& scene,
                       PanelRequests& requests) {
  begin_pane(ui, "ranked", rect);
  rank(scene);
  const float left = rect.x0 + ui.px(12), right = rect.x1 - ui.px(12);
  const std::string detail = of_ ? progress_text(*of_) : "";
  const bool waits = scene.other.divergence_problem.empty() && !(of_ && of_->exact);
  const double progress =
      !waits ? -1
      : of_  ? static_cast<double>(of_->computed) / static_cast<double>(of_->rows.size())
             : 0;
  pane_header(ui, rect, {"Rows", detail, ViewPane::ranked, progress}, scene.chosen, requests);
  const float top = rect.y0 + ui.px(kHeaderHeight + 8);
  if (!scene.other.divergence_problem.empty()) {
    put_problem(ui, "Rows", {left, top, right, rect.y1}, "These rows cannot be compared",
                scene.other.divergence_problem);
    end_pane();
    return;
  }
  const std::string about =
      !of_ ? "computing \u2026"
      : order_.empty()
          ? "no row is a distribution in both maps"
          : "Jensen\u2013Shannon divergence in bits \u00b7 mean " + number_words(mean_);
  put_fitting(ui, ui.fonts.secondary, left, top, right - left, ui.theme.secondary, about);
  const ScreenRect area{left, top + ui.px(24), right, rect.y1 - ui.px(4)};
  if (area.height() > ui.px(kLine) && !order_.empty()) draw_rows(ui, area, scene, requests);
  end_pane();
}

}  // namespace attnscope
