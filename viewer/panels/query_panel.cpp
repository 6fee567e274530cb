#include "viewer/panels/query_panel.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/products/line_summary.h"
#include "io/pictures/shader_scale.h"
#include "viewer/panels/line_colours.h"
#include "viewer/panels/line_controls.h"
#include "viewer/panels/line_text.h"
#include "viewer/panels/volume_panel.h"
#include "viewer/textures/tile_textures.h"
#include "viewer/view/comparison.h"
#include "viewer/view/view_actions.h"
#include "viewer/view/wanted_tiles.h"

namespace attnscope {

/// Uploads the line and fits its colours, where something of that has changed.
void QueryPanel::take_line(const Scene& scene) {
  const Made wanted{scene.line,           scene.state.product, scene.state.scale,
                    scene.state.colormap, scene.state.segment, scene.state.against()};
  if (wanted == made_) return;
  const bool new_line = wanted.line != made_.line || wanted.segment != made_.segment;
  made_ = wanted;
  filmed_ = filmed(*shown_side(scene).grid, scene.state.segment);
  evicted_ = evicted_of(scene, filmed_);
  const std::vector<float>& values = scene.line->values;
  const TokenGrid& grid = filmed_;
  const IndexRange video = grid.video_range();
  scale_ = line_scale(scene, grid);
  specials_ = specials_of(*scene.line, *scale_, evicted_,
                          grid.has_grid() ? video : IndexRange{0, grid.tokens()});
  if (!new_line || !grid.has_grid()) return;
  const int64_t frames = grid.frames(), height = grid.height(), width = grid.width();
  atlas_columns_ = static_cast<int64_t>(std::ceil(std::sqrt(static_cast<double>(frames))));
  const int64_t lines = (frames + atlas_columns_ - 1) / atlas_columns_;
  const int64_t columns = atlas_columns_ * width;
  std::vector<float> texels(static_cast<size_t>(columns * lines * height));
  const bool logs = scene.line->request.quantity == Quantity::weights && !scene.state.against();
  for (int64_t t = 0; t < frames; ++t) {
    for (int64_t y = 0; y < height; ++y) {
      const int64_t row = t / atlas_columns_ * height + y;
      const int64_t to = row * columns + t % atlas_columns_ * width;
      const int64_t from = video.begin + (t * height + y) * width;
      for (int64_t x = 0; x < width; ++x) {
        const auto at = static_cast<size_t>(from + x);
        texels[static_cast<size_t>(to + x)] = is_masked(*scene.line, at)
                                                  ? -std::numeric_limits<float>::infinity()
                                                  : texel_number(values[at], logs);
      }
    }
  }
  grid_.upload(static_cast<int>(lines * height), static_cast<int>(columns), texels);
}

/// Which grid of a token map is filmed, where there are several and room.
void QueryPanel::segment_choice(const Ui& ui, const ScreenRect& room, const Scene& scene,
                                PanelRequests& requests) const {
  const std::vector<std::string> names = film_segments(*shown_side(scene).grid);
  if (names.size() < 2) return;
  float width = ui.px(17 * static_cast<float>(names.size()));
  for (const std::string& name : names) width += text_size(ui.fonts.secondary, name).x;
  if (room.width() < width) return;
  const auto shown = std::find_if(names.begin(), names.end(), [&](const std::string& name) {
    return filmed_.video_range() == filmed_.segment_named(name).tokens;
  });
  ImGui::PushFont(ui.fonts.secondary);
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(ui.px(8), ui.px(2)));
  ImGui::SetCursorScreenPos({room.x1 - width, room.y0 - ui.px(2)});
  const int taken = segmented(ui, "Query", names, static_cast<int>(shown - names.begin()),
                              "which grid of the sequence is filmed");
  if (taken >= 0) requests.act(action::SetSegment{names[static_cast<size_t>(taken)]});
  ImGui::PopStyleVar();
  ImGui::PopFont();
}

/// Hatches the cells that a cache had dropped: runs of a line, those of the next lines that are
/// alike with them.
void QueryPanel::draw_evicted(const Ui& ui) const {
  if (evicted_.empty()) return;
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const TokenGrid& grid = filmed_;
  const auto is_evicted = [&](int64_t t, int64_t y, int64_t x) {
    return evicted_[static_cast<size_t>(grid.index_of({t, y, x}))] != 0;
  };
  const auto run_from = [&](int64_t t, int64_t y, int64_t first) {
    int64_t past = first;
    while (past < grid.width() && is_evicted(t, y, past)) ++past;
    return past;
  };
  std::vector<int64_t> drawn(static_cast<size_t>(grid.width()));  // down to which line
  for (int64_t t = 0; t < grid.frames(); ++t) {
    std::fill(drawn.begin(), drawn.end(), 0);
    for (int64_t y = 0; y < grid.height(); ++y) {
      for (int64_t x = 0; x < grid.width(); ++x) {
        if (drawn[static_cast<size_t>(x)] > y || !is_evicted(t, y, x)) continue;
        const int64_t past = run_from(t, y, x);
        int64_t bottom = y + 1;
        while (bottom < grid.height() && run_from(t, bottom, x) >= past) ++bottom;
        std::fill(drawn.begin() + x, drawn.begin() + past, bottom);
        const ScreenRect from = film_.cell_rect(t, y, x),
                         to = film_.cell_rect(t, bottom - 1, past - 1);
        // The lines of all rectangles are parts of the same ones.
        draw_hatch(ui, draw, {from.x0, from.y0, to.x1, to.y1}, -to.y1);
        x = past - 1;
      }
    }
  }
}

/// Outlines the tokens that the line belongs to where they are among the cells; in a film of words
/// the query that is picked.
void QueryPanel::outline_chosen(const Ui& ui, const Scene& scene) const {
  const bool words = is_of_words(scene);
  if (!scene.call.same_tokens() && !words) return;
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const bool keys = words ? scene.state.reverse : scene.line->request.reverse;
  const ImU32 colour = keys ? ui.theme.key : ui.theme.query;
  static const ChosenQuery kNone;
  const ChosenQuery& picked = scene.state.query ? *scene.state.query : kNone;
  for (const int64_t token : words ? picked.tokens : scene.line->request.tokens) {
    const auto at = filmed_.coord(token);
    if (!at) continue;
    ScreenRect cell = film_.cell_rect(at->t, at->y, at->x);
    // A cell of a pixel or two is outlined from outside, so that it stays to be seen.
    const float grow = std::max(1.0f, (ui.px(6) - cell.width()) / 2);
    draw.AddRect({cell.x0 - grow - 2, cell.y0 - grow - 2}, {cell.x1 + grow + 2, cell.y1 + grow + 2},
                 IM_COL32(0, 0, 0, 150), 0, 0, ui.px(2));
    draw.AddRect({cell.x0 - grow, cell.y0 - grow}, {cell.x1 + grow, cell.y1 + grow}, colour, 0, 0,
                 ui.px(2));
  }
  // The other end of the entry under the mouse.
  if (!scene.readout) return;
  const bool reverse = scene.line->request.reverse;
  const int64_t other = reverse ? scene.readout->point.query : scene.readout->point.key;
  if (const auto at = filmed_.coord(other)) {
    ScreenRect cell = film_.cell_rect(at->t, at->y, at->x);
    const float grow = std::max(1.0f, (ui.px(6) - cell.width()) / 2);
    draw.AddRect({cell.x0 - grow, cell.y0 - grow}, {cell.x1 + grow, cell.y1 + grow},
                 reverse ? ui.theme.query : ui.theme.key, 0, 0, ui.px(1));
  }
}

void QueryPanel::film_mouse(const Ui& ui, const Scene& scene, PanelRequests& requests) {
  const TokenGrid& grid = filmed_;
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  for (int64_t t = 0; t < grid.frames(); ++t) {
    const ScreenRect f = film_.frame(t);
    ImGui::SetCursorScreenPos({f.x0, f.y0});
    ImGui::PushID(static_cast<int>(t));
    const bool clicked = ImGui::InvisibleButton("frame", {f.width(), f.height()});
    ImGui::PopID();
    mark(ui, fmt::format("Query/t{}", t));
    if (!ImGui::IsItemHovered()) continue;
    const auto cell = [&](float at, float low, int64_t count) {
      return std::clamp<int64_t>(static_cast<int64_t>((at - low) / film_.cell), 0, count - 1);
    };
    const int64_t token =
        grid.index_of({t, cell(mouse.y, f.y0, grid.height()), cell(mouse.x, f.x0, grid.width())});
    // A word's film shows the side that queries are picked on.
    const bool same_tokens = scene.call.same_tokens() || is_of_words(scene);
    const bool reverse = scene.line->request.reverse;
    const int64_t chosen = scene.line->request.tokens.front();
    if (clicked && same_tokens) requests.act(action::PickQuery{{{token}}});
    if (!scene.state.query && same_tokens) requests.follow = token;
    requests.hovered = reverse ? MapPoint{token, chosen} : MapPoint{chosen, token};
  }
}

void QueryPanel::draw_film(const Ui& ui, const ScreenRect& area, const Scene& scene,
                           PanelRequests& requests) {
  const TokenGrid& grid = filmed_;
  film_ = FilmLayout::fit(area, grid.frames(), grid.height(), grid.width(), ui.px(18), ui.px(8));
  if (film_.cell <= 0) return;
  layer_.quads.clear();
  ImFont* const small = ui.fonts.secondary;
  for (int64_t t = 0; t < grid.frames(); ++t) {
    const ScreenRect f = film_.frame(t);
    const float u = static_cast<float>(t % atlas_columns_ * grid.width());
    const float v = static_cast<float>(t / atlas_columns_ * grid.height());
    layer_.quads.push_back({f.x0,
                            f.y0,
                            f.x1,
                            f.y1,
                            u,
                            v,
                            u + static_cast<float>(grid.width()),
                            v + static_cast<float>(grid.height()),
                            {}});
    const std::string name = fmt::format("t{}", t);
    if (f.width() >= text_size(small, name).x) {
      put_text(ui, small, f.x0, f.y0 - ui.px(17), ui.theme.secondary, name);
    }
  }
  gl::MapColours colours = painter_colours(scene.state, *scale_, scene.factor, ui.theme);
  colours.use_mean = false;
  // The line's numbers are as they are, in whatever the map's tiles are kept.
  colours.scale = shader_scale(*scale_, scene.factor);
  layer_.add_grid(grid_, colours, scale_->map(), area);
  draw_evicted(ui);
  outline_chosen(ui, scene);
  film_mouse(ui, scene, requests);
}

/// Bars of the largest numbers, for tokens that have no place in a video.
void QueryPanel::draw_list(const Ui& ui, const ScreenRect& area, const Scene& scene,
                           const TokenNames& side) {
  const std::vector<float>& values = scene.line->values;
  std::vector<int64_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  const float line = ui.px(22);
  const size_t count =
      std::min(order.size(), static_cast<size_t>(std::max(1.0f, area.height() / line)));
  const auto value = [&](int64_t i) {
    const float v = values[static_cast<size_t>(i)];
    return std::isnan(v) ? -std::numeric_limits<float>::infinity() : v;
  };
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
                    [&](int64_t a, int64_t b) { return value(a) > value(b); });
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const float bar = area.x0 + area.width() * 0.5f;
  const float room = area.x1 - bar;
  for (size_t i = 0; i < count; ++i) {
    const int64_t token = order[i];
    const float y = area.y0 + static_cast<float>(i) * line;
    put_text(ui, ui.fonts.secondary, area.x0, y + ui.px(2), ui.theme.text,
             fit_text(ui.fonts.secondary, token_text(side, token), bar - area.x0 - ui.px(80)));
    const double shown = static_cast<double>(value(token)) * scene.factor;
    const auto at = static_cast<size_t>(token);
    const bool dropped = !evicted_.empty() && evicted_[at] != 0;
    const std::string number = std::isnan(values[at])       ? "not there"
                               : dropped                    ? "evicted"
                               : is_masked(*scene.line, at) ? "masked"
                                                            : short_number(shown);
    put_text(ui, ui.fonts.mono, bar - ui.px(8), y + ui.px(2), ui.theme.secondary, number,
             Align::right);
    const float unit = static_cast<float>(std::clamp(scale_->unit(shown), 0.0, 1.0));
    draw.AddRectFilled({bar, y + ui.px(4)}, {bar + std::max(1.0f, room * unit), y + ui.px(16)},
                       to_u32(scale_->colour(shown)));
  }
}

/// How much of a row lies on the text, and on which of its words.
void QueryPanel::draw_shares(const Ui& ui, float x, float y, float width, const Scene& scene,
                             const TokenNames& side) const {
  ImFont* const small = ui.fonts.secondary;
  const MapLine& line = *scene.line;
  const IndexRange text = side.grid->text_range();
  const bool weights = line.request.quantity == Quantity::weights;
  const bool sums = !scene.state.against() && !line.request.reverse && weights &&
                    !line.request.sum && scene.call.score != ScoreFunction::sigmoid;
  const auto missing = static_cast<size_t>(
      std::count_if(line.values.begin(), line.values.end(), [](float v) { return std::isnan(v); }));
  std::string words;
  if (missing > 0) {
    words =
        fmt::format("{} of {} numbers are not in the file (hatched)", missing, line.values.size());
  } else if (is_of_words(scene) && line.request.reverse && weights && filmed_.has_grid()) {
    const IndexRange video = filmed_.video_range();
    const double mean = mass_on(line.values, video) / static_cast<double>(video.size());
    words = fmt::format("{} of a row on average over these frames", short_number(mean));
  } else if (!text.empty() && sums) {
    const int64_t best = largest_tokens(line.values, text, 1).front();
    words = fmt::format("{:.1f} % on text, most on {} ({:.1f} %)", 100 * mass_on(line.values, text),
                        token_text(side, best),
                        100 * static_cast<double>(line.values[static_cast<size_t>(best)]));
  }
  put_text(ui, small, x, y, ui.theme.secondary, fit_text(small, words, width));
}

void QueryPanel::draw(const Ui& ui, const ScreenRect& rect, const Scene& scene,
                      PanelRequests& requests) {
  begin_pane(ui, "query", rect);
  const bool failed = !scene.source.line_problem.empty();
  const bool columns = film_of_columns(scene.state);
  // A column waits for the norms of all rows.
  const double progress = columns ? std::max(0.0, scene.source.exact_progress) : 1.0;
  const float from = pane_header(
      ui, rect, {"Query", "", ViewPane::query, scene.line_pending && !failed ? progress : -1.0},
      scene.state, requests);
  const BesideButton beside = volume_button(ui, "Query", rect, scene, requests);
  draw_line_controls(ui, "Query", beside.header, from + ui.px(8), scene, requests);
  shown_ = false;
  ImFont* const small = ui.fonts.secondary;
  const float left = rect.x0 + ui.px(12);
  const float right = rect.x1 - ui.px(12);
  const float top = rect.y0 + ui.px(kHeaderHeight + 10);
  if (failed) {
    put_problem(ui, "Query", {left, top, right, rect.y1},
                columns ? "This column cannot be shown" : "This row cannot be shown",
                scene.source.line_problem);
    end_pane();
    return;
  }
  if (const std::string why = no_line_text(scene); !why.empty()) {
    put_text(ui, small, left, top, ui.theme.secondary, fit_text(small, why, right - left));
    end_pane();
    return;
  }
  shown_ = true;
  take_line(scene);
  const TokenNames& side = shown_side(scene);
  const std::string who = fit_text(small, chosen_line_text(scene), right - left);
  const ImU32 colour = scene.line->request.reverse ? ui.theme.key : ui.theme.query;
  put_text(ui, small, left, top, colour, who);
  const float after = left + text_size(small, who).x + ui.px(12);
  const std::string how = fit_text(small, how_text(scene), beside.line_end - after);
  put_text(ui, small, after, top, ui.theme.secondary, how);
  segment_choice(
      ui, {after + text_size(small, how).x + ui.px(12), top, beside.line_end, top + ui.px(20)},
      scene, requests);
  const float swatches = specials_.any() ? ui.px(kSwatchHeight) : 0;
  const float bottom = rect.y1 - ui.px(kLegendHeight + 34) - swatches;
  const ScreenRect area{left, top + ui.px(24), right, bottom};
  float legend_top = bottom + ui.px(8);
  if (filmed_.has_grid()) {
    draw_film(ui, area, scene, requests);
    legend_top = std::min(legend_top, film_.bottom() + ui.px(12));
  } else {
    draw_list(ui, area, scene, side);
  }
  const std::string caption =
      line_unit(scene) + ", " + std::string(scale_kind_name(scale_->kind())) + " \u00b7 " +
      exactness_text(scene) + (filmed_.has_grid() ? ", one range for all frames" : "");
  const float width = std::min(ui.px(360), right - left);
  draw_legend(ui, {left, legend_top, left + width, legend_top + ui.px(kLegendHeight)}, *scale_,
              caption, right - left, nothing_text(specials_));
  const float below = legend_top + ui.px(kLegendHeight + 2);
  draw_swatches(ui, left, below, right - left, specials_);
  draw_shares(ui, left, below + swatches, right - left, scene, side);
  end_pane();
}

}  // namespace attnscope
