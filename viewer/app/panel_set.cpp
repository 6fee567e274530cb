#include "viewer/app/panel_set.h"

#include <algorithm>
#include <cmath>

#include "viewer/panels/offset_curves.h"
#include "viewer/panels/pane_tabs.h"

namespace attnscope {
namespace {

constexpr float kGap = 4;  ///< between panes; where splitters are
/// A right column that is lower has the query alone.
constexpr float kLeastColumn = 240;
/// Of the panes in it, the query and the one below.
constexpr float kLeastQuery = 200, kLeastPane = 168;
/// Of the right column, unless somebody has chosen another width, where the window has so much.
constexpr float kLeastUsualWidth = 400, kMostUsualShare = 0.45f;
/// The height that the strip of steps must leave to the panes, or it is left out.
constexpr float kLeastBelowStrip = 260;
/// The share of the window's height that the toolbar may take before it folds.
constexpr float kMostToolbar = 0.25f;

}  // namespace

float PanelSet::splitter(const Ui& ui, const char* label, const ScreenRect& rect, bool upright) {
  ImGui::SetCursorScreenPos({rect.x0, rect.y0});
  ImGui::InvisibleButton(label, {rect.width(), rect.height()});
  mark(ui, label);
  const bool held = ImGui::IsItemActive();
  if (held || ImGui::IsItemHovered()) {
    ImGui::SetMouseCursor(upright ? ImGuiMouseCursor_ResizeEW : ImGuiMouseCursor_ResizeNS);
    ImGui::GetWindowDrawList()->AddRectFilled({rect.x0, rect.y0}, {rect.x1, rect.y1},
                                              ui.theme.hovered);
  }
  if (!held) return 0;
  return upright ? ImGui::GetIO().MouseDelta.x : ImGui::GetIO().MouseDelta.y;
}

/// The atlas, and the words below it, take the left of `rect`; gives what they leave.
ScreenRect PanelSet::draw_left(const Ui& ui, const ScreenRect& rect, const Scene& scene,
                               PanelRequests& requests) {
  const bool words = scene.words != nullptr && scene.state.words.shown;
  if (scene.atlas == nullptr && !words) return rect;
  const float gap = ui.px(kGap);
  const float least = std::min(ui.px(160), rect.width() * 0.3f);
  const float width =
      std::round(std::clamp(rect.width() * atlas_share_, least, rect.width() - 2 * least));
  ScreenRect atlas{rect.x0, rect.y0, rect.x0 + width, rect.y1};
  const float moved =
      splitter(ui, "Split/Atlas", {atlas.x1, rect.y0, atlas.x1 + gap, rect.y1}, true);
  if (moved != 0) atlas_share_ = std::clamp((width + moved) / rect.width(), 0.1f, 0.8f);
  if (words) {
    ScreenRect list = atlas;
    if (scene.atlas != nullptr) {
      const float height = std::round(rect.height() * words_share_);
      list.y0 = rect.y1 - height;
      atlas.y1 = list.y0 - gap;
      const float up = splitter(ui, "Split/Words", {atlas.x0, atlas.y1, atlas.x1, list.y0}, false);
      if (up != 0) words_share_ = std::clamp((height - up) / rect.height(), 0.15f, 0.85f);
    }
    words_.draw(ui, list, scene, requests);
  }
  if (scene.atlas != nullptr) atlas_.draw(ui, atlas, scene, requests);
  return {atlas.x1 + gap, rect.y0, rect.x1, rect.y1};
}

float& PanelSet::share_below(ViewPane pane) {
  switch (pane) {
    case ViewPane::ranked:
      return ranked_share_;
    case ViewPane::mask:
      return mask_share_;
    case ViewPane::frames:
      return frames_share_;
    default:
      return histogram_share_;
  }
}

/// The pane that stands below the query takes the foot of `column`, with its tabs above it; gives
/// what it leaves to the query.
ScreenRect PanelSet::draw_below(const Ui& ui, const ScreenRect& column, const Scene& scene,
                                PanelRequests& requests) {
  const std::optional<ViewPane> pane = pane_below(scene.chosen);
  // A low column has the query alone, unless a pane was asked for.
  const bool low = column.height() < ui.px(kLeastColumn);
  if (!pane || (low && pane == ViewPane::histogram)) return column;
  float& share = share_below(*pane);
  const float gap = ui.px(kGap);
  const float most = std::max(column.height() - ui.px(kLeastQuery) - gap, column.height() / 2);
  const float least = std::min(ui.px(kLeastPane), most);
  const float height = std::round(
      std::clamp(column.height() * share, least, std::min(most, column.height() * 0.7f)));
  const ScreenRect below{column.x0, column.y1 - height, column.x1, column.y1};
  const ScreenRect above{column.x0, column.y0, column.x1, below.y0 - gap};
  const float moved = splitter(ui, "Split/Rows", {column.x0, above.y1, column.x1, below.y0}, false);
  if (moved != 0) share = std::clamp((height - moved) / column.height(), 0.1f, 0.7f);
  draw_pane_tabs(ui, below, scene, requests);
  draw_pane(*pane, ui, {below.x0, below.y0 + ui.px(kTabsHeight), below.x1, below.y1}, scene,
            requests);
  return above;
}

void PanelSet::draw_split(const Ui& ui, const ScreenRect& whole, const Scene& scene,
                          PanelRequests& requests) {
  const ScreenRect rect = draw_left(ui, whole, scene, requests);
  const ViewState& state = scene.state;
  const float gap = ui.px(kGap);
  const bool usual = state.split_query == kUsualColumn;
  const float least = usual ? std::min(ui.px(kLeastUsualWidth), rect.width() * kMostUsualShare)
                            : std::min(ui.px(240), rect.width() * 0.3f);
  const float right_width =
      std::clamp(rect.width() * state.split_query, least, rect.width() - least);
  const float middle = std::round(rect.x1 - right_width);
  const ScreenRect left{rect.x0, rect.y0, middle - gap, rect.y1};
  ScreenRect query{middle, rect.y0, rect.x1, rect.y1};
  float moved = splitter(ui, "Split/Columns", {middle - gap, rect.y0, middle, rect.y1}, true);
  if (moved != 0) {
    const float share = (right_width - moved) / rect.width();
    requests.act(action::SetSplit{std::clamp(share, 0.1f, 0.9f)});
  }
  query = draw_below(ui, query, scene, requests);
  matrix_.draw(ui, left, scene, requests);
  if (state.volume.shown) {
    volume_.draw(ui, query, scene, requests);
  } else {
    query_.draw(ui, query, scene, requests);
  }
}

void PanelSet::draw_pane(ViewPane pane, const Ui& ui, const ScreenRect& rect, const Scene& scene,
                         PanelRequests& requests) {
  switch (pane) {
    case ViewPane::query:
      return query_.draw(ui, rect, scene, requests);
    case ViewPane::histogram:
      return histogram_.draw(ui, rect, scene, requests);
    case ViewPane::atlas:
      return atlas_.draw(ui, rect, scene, requests);
    case ViewPane::volume:
      return volume_.draw(ui, rect, scene, requests);
    case ViewPane::timeline:
      return timeline_.draw(ui, rect, scene, requests);
    case ViewPane::mask:
      return mask_.draw(ui, rect, scene, requests);
    case ViewPane::frames:
      return frames_.draw(ui, rect, scene, requests);
    case ViewPane::ranked:
      return ranked_.draw(ui, rect, scene, requests);
    case ViewPane::words:
      if (scene.words != nullptr) words_.draw(ui, rect, scene, requests);
      return;
    case ViewPane::matrix:
      return matrix_.draw(ui, rect, scene, requests);
  }
}

void PanelSet::draw(const Ui& ui, const ScreenRect& window, const Scene& scene,
                    PanelRequests& requests) {
  query_.begin_frame();
  atlas_.begin_frame();
  const float gap = ui.px(kGap);
  const float status = ui.px(kStatusHeight);
  const float bar = std::round(toolbar_.height());
  toolbar_.draw(ui, {window.x0, window.y0, window.x1, window.y0 + bar},
                window.height() * kMostToolbar, scene, requests);
  ScreenRect rest{window.x0, window.y0 + bar + gap, window.x1, window.y1 - status - gap};
  if (scene.is_sample) {
    const float banner = ui.px(kBannerHeight);
    draw_sample_banner(ui, {rest.x0, rest.y0, rest.x1, rest.y0 + banner}, requests);
    rest.y0 += banner + gap;
  }
  if (!scene.warning.empty()) {
    const float banner = ui.px(kBannerHeight);
    draw_warning_banner(ui, {rest.x0, rest.y0, rest.x1, rest.y0 + banner}, scene, requests);
    rest.y0 += banner + gap;
  }
  const float strip = TimelinePanel::strip_height(ui, scene);
  if (strip > 0 && rest.height() - strip - gap >= ui.px(kLeastBelowStrip)) {
    timeline_.draw_strip(ui, {rest.x0, rest.y0, rest.x1, rest.y0 + strip}, scene, requests);
    rest.y0 += strip + gap;
  }
  if (scene.state.maximised) {
    draw_pane(*scene.state.maximised, ui, rest, scene, requests);
  } else {
    draw_split(ui, rest, scene, requests);
  }
  std::string tracks = offset_readout(scene);
  const bool is_map_drawn = scene.state.maximised.value_or(ViewPane::matrix) == ViewPane::matrix;
  if (is_map_drawn && !matrix_.tracks_readout().empty()) {
    tracks = matrix_.tracks_readout() + (tracks.empty() ? "" : "   " + tracks);
  }
  std::string resolution = resolution_text(matrix_.seen(), scene.call, scene.state.pool);
  if (matrix_.seen().level > 0) {
    resolution = "level " + std::to_string(matrix_.seen().level) + " \u00b7 " + resolution;
  }
  draw_status_line(ui, {window.x0, window.y1 - status, window.x1, window.y1}, scene, resolution,
                   tracks, requests);
  magnifier_.draw(ui, window, matrix_.seen().level > 0, scene, requests);
}

}  // namespace attnscope
