#include "viewer/panels/frames_panel.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/number_words.h"
#include "viewer/panels/legend.h"
#include "viewer/panels/offset_curves.h"
#include "viewer/panels/widgets.h"
#include "viewer/textures/tile_textures.h"
#include "viewer/view/name_places.h"
#include "viewer/view/view_actions.h"

namespace attnscope {
namespace {

/// Masses below this share of the largest are as dark as it gets.
constexpr double kLeastShare = 1e-4;
/// Cells that scripts can click by name: of no more than these.
constexpr size_t kMostNamed = 4096;
constexpr float kNames = 44, kNamesAbove = 20, kLegend = 60;
/// Of the cells of a pane that has curves as well.
constexpr float kLeastCells = 140;

/// From the first to the last place of the matrix where tokens of a group stand.
IndexRange places_of(const TokenGroup& group, const PlacedSide& side) {
  if (side.is_stored()) return group.tokens;
  const int64_t first = side.place(group.tokens.begin);
  IndexRange places{first, first + 1};
  for (int64_t token = group.tokens.begin; token < group.tokens.end; ++token) {
    const int64_t place = side.place(token);
    places = {std::min(places.begin, place), std::max(places.end, place + 1)};
  }
  return places;
}

MapRect rect_of(const Scene& scene, const TokenGroup& queries, const TokenGroup& keys) {
  const IndexRange rows = places_of(queries, *scene.placed.rows);
  const IndexRange cols = places_of(keys, *scene.placed.keys);
  return {static_cast<double>(rows.begin), static_cast<double>(rows.end),
          static_cast<double>(cols.begin), static_cast<double>(cols.end)};
}

std::string detail_text(const Scene& scene) {
  if (!scene.tracks) return "";
  if (scene.tracks->exact) return "mass on frames, exact";
  return fmt::format("mass on frames, from {} of {} rows", scene.tracks->computed,
                     scene.geometry.rows);
}

/// A share in per cent, of two digits at least: "43", "4.3", "0.43", "0.04".
std::string per_cent(double share) {
  const double value = 100 * share;
  return fmt::format("{:.{}f}", value, value >= 9.95 ? 0 : value >= 0.995 ? 1 : 2);
}

/// Masses have no logits and no differences.
ViewState of_masses(const ViewState& shown) {
  ViewState state = shown;
  state.product = ViewProduct::weights;
  state.pool = Pool::max;
  state.other.reset();
  return state;
}

}  // namespace

double FramesPanel::mass(size_t row, size_t col) const {
  return of_
      ->group_mass[static_cast<size_t>(queries_[row].number * of_->key_groups + keys_[col].number)];
}

void FramesPanel::take(const Scene& scene) {
  if (of_ == scene.tracks) return;
  of_ = scene.tracks;
  if (!of_) return;
  queries_ = token_groups(*scene.queries.grid);
  keys_ = token_groups(*scene.keys.grid);
  std::vector<float> texels;
  range_ = {std::numeric_limits<double>::infinity(), 0};
  for (size_t row = 0; row < queries_.size(); ++row) {
    for (size_t col = 0; col < keys_.size(); ++col) {
      const double value = mass(row, col);
      // NaN of frames without a row that attends to anything, or none that was computed yet.
      texels.push_back(texel_number(static_cast<float>(value), true));
      if (!(value > 0)) continue;
      range_.low = std::min(range_.low, value);
      range_.high = std::max(range_.high, value);
    }
  }
  empty_ = !(range_.high > 0);
  range_.low = std::max(range_.low, range_.high * kLeastShare);
  if (!(range_.low < range_.high)) range_.low = range_.high / 2;
  texture_.upload(static_cast<int>(queries_.size()), static_cast<int>(keys_.size()), texels);
}

/// The matrix' kind of scale and colours, over the masses that there are.
ColourScale FramesPanel::scale_of(const Scene& scene) const {
  const Colormap map = parse_colormap(scene.state.colormap).value_or(Colormap::viridis);
  const bool logarithmic = scene.state.scale == ScaleKind::log2;
  if (empty_) return ColourScale::of_nothing(map, ScaleKind::log2);
  if (logarithmic) return {map, ScaleKind::log2, range_};
  const bool root = scene.state.scale == ScaleKind::sqrt;
  return {map, root ? ScaleKind::sqrt : ScaleKind::linear, {0, range_.high}};
}

ScreenRect FramesPanel::cell_rect(const ScreenRect& cells, size_t row, size_t col) const {
  const float width = cells.width() / static_cast<float>(keys_.size());
  const float height = cells.height() / static_cast<float>(queries_.size());
  return {cells.x0 + width * static_cast<float>(col), cells.y0 + height * static_cast<float>(row),
          cells.x0 + width * static_cast<float>(col + 1),
          cells.y0 + height * static_cast<float>(row + 1)};
}

void FramesPanel::draw_cells(const Ui& ui, const ScreenRect& cells, const Scene& scene,
                             const ColourScale& scale) {
  layer_.quads.clear();
  layer_.quads.push_back({cells.x0,
                          cells.y0,
                          cells.x1,
                          cells.y1,
                          0,
                          0,
                          static_cast<float>(keys_.size()),
                          static_cast<float>(queries_.size()),
                          {}});
  layer_.add_grid(texture_, painter_colours(of_masses(scene.state), scale, 1, ui.theme),
                  scale.map(), cells);
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  // The part of the map that is seen is outlined, where frames stand one after the other.
  if (!scene.state.order.is_stored()) return;
  const auto place = [](const std::vector<TokenGroup>& groups, double token) {
    double at = 0;
    for (const TokenGroup& group : groups) {
      const auto begin = static_cast<double>(group.tokens.begin);
      at += std::clamp((token - begin) / static_cast<double>(group.tokens.size()), 0.0, 1.0);
    }
    return static_cast<float>(at / static_cast<double>(groups.size()));
  };
  const MapRect& seen = scene.state.rect;
  const ImVec2 low{cells.x0 + cells.width() * place(keys_, seen.k0),
                   cells.y0 + cells.height() * place(queries_, seen.q0)};
  const ImVec2 high{cells.x0 + cells.width() * place(keys_, seen.k1),
                    cells.y0 + cells.height() * place(queries_, seen.q1)};
  draw.AddRect({low.x - 1, low.y - 1}, {high.x + 1, high.y + 1}, IM_COL32(0, 0, 0, 160), 0, 0,
               ui.px(3));
  draw.AddRect(low, high, IM_COL32(255, 255, 255, 255), 0, 0, ui.px(1));
}

/// True where every cell has room for its mass in per cent.
bool FramesPanel::has_numbers(const Ui& ui, const ScreenRect& cells, const Scene& scene) const {
  const ScreenRect cell = cell_rect(cells, 0, 0);
  return is_normalised(scene.call.score) &&
         cell.width() >= text_size(ui.fonts.mono, "0.00").x + ui.px(2) &&
         cell.height() >= ui.fonts.mono->FontSize;
}

void FramesPanel::draw_numbers(const Ui& ui, const ScreenRect& cells,
                               const ColourScale& scale) const {
  ImFont* const font = ui.fonts.mono;
  for (size_t row = 0; row < queries_.size(); ++row) {
    for (size_t col = 0; col < keys_.size(); ++col) {
      const double value = mass(row, col);
      if (std::isnan(value)) continue;
      const ScreenRect cell = cell_rect(cells, row, col);
      put_text(ui, font, (cell.x0 + cell.x1) / 2, (cell.y0 + cell.y1 - font->FontSize) / 2,
               ink_on(to_u32(scale.colour(value))), per_cent(value), Align::centre);
    }
  }
}

/// Beside the rows and above the columns, where they have room.
void FramesPanel::draw_names(const Ui& ui, const ScreenRect& cells) const {
  ImFont* const font = ui.fonts.secondary;
  const float widest = ui.px(kNames - 6);
  // Of a line of text, what letters take.
  const float letters = font->FontSize - ui.px(4);
  std::vector<AxisName> rows, columns;
  for (size_t row = 0; row < queries_.size(); ++row) {
    const ScreenRect cell = cell_rect(cells, row, 0);
    rows.push_back({(cell.y0 + cell.y1) / 2, letters});
  }
  for (size_t col = 0; col < keys_.size(); ++col) {
    const ScreenRect cell = cell_rect(cells, 0, col);
    const float width = std::min(widest, text_size(font, keys_[col].name).x);
    columns.push_back({(cell.x0 + cell.x1) / 2, width});
  }
  const float above = cells.y0 - ui.px(kNamesAbove);
  const auto down = place_names(rows, cells.y0 - ui.px(5), cells.y1 + ui.px(8), 0);
  for (size_t row = 0; row < rows.size(); ++row) {
    if (!down[row]) continue;
    put_fitting(ui, font, cells.x0 - ui.px(5), *down[row] - ui.px(2), widest, ui.theme.query,
                queries_[row].name, Align::right);
  }
  const auto across =
      place_names(columns, cells.x0 - ui.px(kNames), cells.x1 + ui.px(10), ui.px(5));
  for (size_t col = 0; col < columns.size(); ++col) {
    if (across[col]) {
      put_fitting(ui, font, *across[col], above, widest, ui.theme.key, keys_[col].name);
    }
  }
}

void FramesPanel::take_mouse(const Ui& ui, const ScreenRect& cells, const Scene& scene,
                             PanelRequests& requests) const {
  if (queries_.size() * keys_.size() <= kMostNamed) {
    for (size_t row = 0; row < queries_.size(); ++row) {
      for (size_t col = 0; col < keys_.size(); ++col) {
        ui.labels.add("Frames/" + queries_[row].name + "/" + keys_[col].name,
                      cell_rect(cells, row, col));
      }
    }
  }
  ImGui::SetCursorScreenPos({cells.x0, cells.y0});
  const bool clicked = ImGui::InvisibleButton("frames", {cells.width(), cells.height()});
  if (!ImGui::IsItemHovered() && !clicked) return;
  const auto cell_at = [](float at, float low, float length, size_t count) {
    const float share = std::clamp((at - low) / length, 0.0f, 1.0f);
    return std::min(count - 1, static_cast<size_t>(share * static_cast<float>(count)));
  };
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  const size_t row = cell_at(mouse.y, cells.y0, cells.height(), queries_.size());
  const size_t col = cell_at(mouse.x, cells.x0, cells.width(), keys_.size());
  const ScreenRect cell = cell_rect(cells, row, col);
  ImGui::GetWindowDrawList()->AddRect({cell.x0, cell.y0}, {cell.x1, cell.y1}, ui.theme.text, 0, 0,
                                      ui.px(1.5f));
  const double value = mass(row, col);
  const bool share = is_normalised(scene.call.score);
  const std::string number = !std::isnan(value) ? (share ? share_words(value) : number_words(value))
                             : scene.tracks->exact ? "\u2013 (no row attends to anything)"
                                                   : "\u2026";
  tooltip("queries of " + queries_[row].name + " put " + number + "\non keys of " +
          keys_[col].name + ", on average; click: show this part");
  if (clicked) requests.act(action::SetRect{rect_of(scene, queries_[row], keys_[col])});
}

void FramesPanel::draw(const Ui& ui, const ScreenRect& rect, const Scene& scene,
                       PanelRequests& requests) {
  begin_pane(ui, "frames", rect);
  take(scene);
  const bool works = !scene.tracks || !scene.tracks->exact;
  const double progress = works && scene.source.busy ? 2 : -1;
  ImFont* const small = ui.fonts.secondary;
  pane_header(ui, rect, {"Frames", detail_text(scene), ViewPane::frames, progress}, scene.state,
              requests);
  const ScreenRect inner{rect.x0 + ui.px(12), rect.y0 + ui.px(kHeaderHeight + 6),
                         rect.x1 - ui.px(12), rect.y1 - ui.px(8)};
  if (!scene.call.weights || !scene.tracks_problem.empty()) {
    put_problem(ui, "Frames", inner, "There are no masses",
                scene.call.weights ? scene.tracks_problem
                                   : "weights of either sign are no shares of a row");
  } else if (!of_) {
    put_text(ui, small, inner.x0, inner.y0, ui.theme.secondary, "computing \u2026");
  } else {
    const bool legend = inner.height() >= ui.px(kLegend + kNamesAbove + 80);
    ScreenRect cells{inner.x0 + ui.px(kNames), inner.y0 + ui.px(kNamesAbove), inner.x1,
                     inner.y1 - (legend ? ui.px(kLegend) : 0)};
    // The curves beside them have room where enough is left to the cells.
    const float left = cells.width() - ui.px(kLeastCurves + 20);
    if (!of_->by_dt.empty() && left >= ui.px(kLeastCells)) cells.x1 = cells.x0 + left;
    // Cells are squares where that fits.
    const float side =
        std::max(1.0f, std::min(cells.width() / static_cast<float>(keys_.size()),
                                cells.height() / static_cast<float>(queries_.size())));
    cells.x1 = cells.x0 + side * static_cast<float>(keys_.size());
    cells.y1 = cells.y0 + side * static_cast<float>(queries_.size());
    const ColourScale scale = scale_of(scene);
    draw_cells(ui, cells, scene, scale);
    const bool numbers = has_numbers(ui, cells, scene);
    if (numbers) draw_numbers(ui, cells, scale);
    draw_names(ui, cells);
    take_mouse(ui, cells, scene, requests);
    const ScreenRect curves{cells.x1 + ui.px(20), cells.y0 - ui.px(kNamesAbove - 3), inner.x1,
                            cells.y1};
    if (!of_->by_dt.empty() && curves.width() >= ui.px(kLeastCurves)) {
      draw_offset_curves(ui, curves, *of_);
    }
    if (legend) {
      const float top = inner.y1 - ui.px(kLegend - 8);
      draw_legend(ui, {inner.x0, top, std::min(inner.x1, inner.x0 + ui.px(300)), inner.y1}, scale,
                  "mean mass of a frame's queries, " + std::string(scale_kind_name(scale.kind())) +
                      (numbers ? " \u00b7 numbers in %" : ""),
                  inner.width(), "every mass is 0");
    }
  }
  end_pane();
}

}  // namespace attnscope
