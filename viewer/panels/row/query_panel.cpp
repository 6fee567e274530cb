#include "viewer/panels/row/query_panel.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/base/number_words.h"
#include "viewer/panels/row/film_menu.h"
#include "viewer/panels/row/line_colours.h"
#include "viewer/panels/row/line_controls.h"
#include "viewer/panels/row/line_text.h"
#include "viewer/panels/row/volume_panel.h"
#include "viewer/view/view_actions.h"
#include "viewer/view/wanted_tiles.h"

namespace attnscope {
namespace {

/// A film that would be lower above its legend goes without it.
constexpr float kLeastFilm = 40;
/// Beside the buttons, what the token's name needs; else it stands below them.
constexpr float kLeastName = 64;

std::string film_note(const FilmLook& look, const FilmContent& content) {
  const std::string over = over_text(look, content);
  const std::string time(film_time_text(content.time));
  return over + (over.empty() || time.empty() ? "" : " \u00b7 ") + time;
}

}  // namespace

/// Fits the colours of the line, where something of that has changed.
void QueryPanel::take_line(const Scene& scene) {
  const Made wanted{scene.line,           scene.state.product, scene.state.scale,
                    scene.state.colormap, scene.state.segment, scene.state.against()};
  if (wanted == made_) return;
  made_ = wanted;
  filmed_ = filmed(*shown_side(scene).grid, scene.state.segment);
  evicted_ = evicted_of(scene, filmed_);
  const TokenGrid& grid = filmed_;
  const IndexRange video = grid.video_range();
  scale_ = line_scale(scene, grid);
  specials_ = specials_of(*scene.line, *scale_, evicted_,
                          grid.has_grid() ? video : IndexRange{0, grid.tokens()});
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

/// Outlined are the tokens that the line belongs to; in a film of words the query that is picked.
void QueryPanel::draw_film(const Ui& ui, const ScreenRect& area, const Scene& scene,
                           PanelRequests& requests) {
  const LineRequest& request = scene.line->request;
  const bool words = is_of_words(scene);
  Filmed filmed{scene.line, filmed_, *scale_};
  filmed.evicted = evicted_;
  // A word's film shows the side that queries are picked on.
  filmed.picks = scene.call.same_tokens() || words;
  filmed.picked = scene.state.query;
  const bool keys = words ? scene.state.reverse : request.reverse;
  if (filmed.picks) {
    if (!words) filmed.outlined = request.tokens;
    if (words && scene.state.query) filmed.outlined = scene.state.query->tokens;
    filmed.outline = keys ? ui.theme.key_mark : ui.theme.query_mark;
    filmed.other = request.reverse ? ui.theme.query_mark : ui.theme.key_mark;
  }
  film_.take(scene, filmed);
  film_.draw(ui, area, scene, filmed, requests);
}

/// Bars of the largest numbers, for tokens that have no place in a video: as long as the numbers
/// are large, from 0 on.
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
  const auto length = [&](int64_t i) {
    const double v = static_cast<double>(value(i)) * scene.factor;
    return std::isfinite(v) ? v : 0;
  };
  bars_ = {0, 0};
  for (size_t i = 0; i < count; ++i) {
    bars_.low = std::min(bars_.low, length(order[i]));
    bars_.high = std::max(bars_.high, length(order[i]));
  }
  const auto x_of = [&](double v) {
    const double extent = bars_.high - bars_.low;
    return bar + room * static_cast<float>(extent > 0 ? (v - bars_.low) / extent : 0);
  };
  for (size_t i = 0; i < count; ++i) {
    const int64_t token = order[i];
    const float y = area.y0 + static_cast<float>(i) * line;
    put_fitting(ui, ui.fonts.secondary, area.x0, y + ui.px(2), bar - area.x0 - ui.px(80),
                ui.theme.text, token_text(side, token));
    const double shown = static_cast<double>(value(token)) * scene.factor;
    const auto at = static_cast<size_t>(token);
    const bool dropped = !evicted_.empty() && evicted_[at] != 0;
    const std::string number = std::isnan(values[at])       ? "not there"
                               : dropped                    ? "evicted"
                               : is_masked(*scene.line, at) ? "masked"
                                                            : number_words(shown);
    put_text(ui, ui.fonts.mono, bar - ui.px(8), y + ui.px(2), ui.theme.secondary, number,
             Align::right);
    const auto [from, to] = std::minmax({x_of(0), x_of(length(token))});
    const ScreenRect drawn{from, y + ui.px(4), std::max(to, from + 1), y + ui.px(16)};
    draw.AddRectFilled({drawn.x0, drawn.y0}, {drawn.x1, drawn.y1}, to_u32(scale_->colour(shown)));
    ui.labels.add(fmt::format("Query/Bar {}", i), drawn);
  }
}

/// Names the numbers at the two ends of the list's bars.
std::string QueryPanel::bars_text() const {
  return fmt::format("bars from {} to {}", number_words(bars_.low), number_words(bars_.high));
}

/// Draws the legend of the film or list, swatches of what has no colour, and notes on the row.
void QueryPanel::explain(const Ui& ui, const ScreenRect& area, const Scene& scene,
                         const std::string& note) const {
  const bool film = filmed_.has_grid();
  const std::string caption = unit_ + ", " + std::string(scale_kind_name(scale_->kind())) +
                              " \u00b7 " + exactness_text(scene) +
                              (film ? ", one range for all frames" : "");
  const float width = std::min(ui.px(360), area.width());
  const float end = area.y0 + ui.px(kLegendHeight);
  draw_legend(ui, {area.x0, area.y0, area.x0 + width, end}, *scale_, caption, area.width(),
              nothing_text(specials_));
  float below = end + ui.px(2);
  draw_swatches(ui, area.x0, below, area.width(), specials_);
  if (specials_.any()) below += ui.px(kSwatchHeight);
  put_fitting(ui, ui.fonts.secondary, area.x0, below, area.width(), ui.theme.secondary,
              share_text(scene, filmed_));
  if (note.empty()) return;
  ImFont* const small = ui.fonts.secondary;
  put_fitting(ui, small, area.x0, below + ui.px(18), area.width(),
              film_.problem().empty() ? ui.theme.secondary : ui.theme.problem, note);
}

void QueryPanel::draw(const Ui& ui, const ScreenRect& rect, const Scene& scene,
                      PanelRequests& requests) {
  begin_pane(ui, "query", rect);
  const bool failed = !scene.line_problem.empty();
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
                scene.line_problem);
    end_pane();
    return;
  }
  if (const std::string why = no_line_text(scene); !why.empty()) {
    put_fitting(ui, small, left, top, beside.line_end - left, ui.theme.secondary, why);
    end_pane();
    return;
  }
  shown_ = true;
  take_line(scene);
  const TokenNames& side = shown_side(scene);
  what_ = chosen_line_text(scene);
  unit_ = line_unit(scene);
  const bool film = filmed_.has_grid();
  const float buttons = film ? beside.line_end - film_button_width(ui) - ui.px(8) : beside.line_end;
  // Of a narrow pane the name stands below the buttons, of a still narrower one these too.
  const bool narrow = buttons - left < ui.px(kLeastName);
  const bool stacked = film && buttons + ui.px(8) < left;
  const float film_y = top + (stacked ? ui.px(24) : 0.0f);
  const float line = narrow ? film_y + ui.px(24) : top, end = narrow ? right : buttons;
  const float after = draw_chosen_line(ui, "Query", {left, line, end, line}, what_, how_text(scene),
                                       scene, requests);
  segment_choice(ui, {after + ui.px(12), line, end, line + ui.px(20)}, scene, requests);
  const float swatches = specials_.any() ? ui.px(kSwatchHeight) : 0;
  const std::string note = film_.problem().empty()
                               ? film_note(scene.state.film, film_.content())
                               : "the video cannot be shown: " + film_.problem();
  const float noted = !film || !note.empty() ? ui.px(18) : 0;
  const float legend = ui.px(kLegendHeight + 34) + swatches + noted;
  // Of a low pane, the row comes before what is said of it.
  const bool explains = rect.y1 - legend - line - ui.px(24) >= ui.px(kLeastFilm);
  const float bottom = rect.y1 - (explains ? legend : ui.px(8));
  const ScreenRect area{left, line + ui.px(24), right, std::max(bottom, line + ui.px(25))};
  float legend_top = bottom + ui.px(8);
  if (film) {
    draw_film(ui, area, scene, requests);
    draw_film_button(ui, stacked ? right : beside.line_end, film_y - ui.px(2), scene,
                     film_.content(), requests);
    legend_top = std::min(legend_top, film_.bottom() + ui.px(12));
  } else {
    draw_list(ui, area, scene, side);
  }
  if (explains) {
    explain(ui, {left, legend_top, right, rect.y1}, scene, film ? note : bars_text());
  }
  end_pane();
}

}  // namespace attnscope
