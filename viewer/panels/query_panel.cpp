#include "viewer/panels/query_panel.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/products/line_summary.h"
#include "viewer/panels/film_menu.h"
#include "viewer/view/view_actions.h"
#include "viewer/view/wanted_tiles.h"

namespace attnscope {
namespace {

/// The tokens that the line has a number for.
const TokenNames& shown_side(const Scene& scene) {
  return scene.line->request.reverse ? scene.queries : scene.keys;
}

/// The tokens that the line belongs to.
const TokenNames& chosen_side(const Scene& scene) {
  return scene.line->request.reverse ? scene.keys : scene.queries;
}

/// Whether the film is of the words that are chosen.
bool is_of_words(const Scene& scene) {
  if (scene.state.words.chosen.empty() || scene.words == nullptr) return false;
  const LineRequest& request = scene.line->request;
  const int64_t first = chosen_side(scene).grid->text_range().begin;
  return std::equal(request.tokens.begin(), request.tokens.end(), scene.state.words.chosen.begin(),
                    scene.state.words.chosen.end(),
                    [&](int64_t token, int64_t number) { return token == first + number; });
}

std::string chosen_line_text(const Scene& scene) {
  const LineRequest& request = scene.line->request;
  const auto& tokens = request.tokens;
  if (is_of_words(scene)) {
    return chosen_text(prompt_words(chosen_side(scene)), scene.state.words.chosen);
  }
  if (tokens.size() > 1) {
    return fmt::format("{} of {} tokens", request.sum ? "sum" : "mean", tokens.size());
  }
  return token_text(chosen_side(scene), tokens.front());
}

/// What stands behind the name of what is filmed.
std::string how_text(const Scene& scene) {
  if (is_of_words(scene)) {
    return scene.line->request.reverse ? "which tokens look for it" : "where it looks";
  }
  return scene.state.query ? "picked" : "follows the mouse, click to pick";
}

/// "sum of 2 weights", "weight".
std::string line_unit(const Scene& scene) {
  const LineRequest& request = scene.line->request;
  const std::string unit = unit_name(scene.state.product);
  if (request.tokens.size() < 2 || !is_of_words(scene)) return unit;
  return fmt::format("{} of {} words' {}", request.sum ? "sum" : "mean", request.tokens.size(),
                     unit);
}

std::string film_note(const FilmLook& look, const FilmContent& content) {
  const std::string over = over_text(look, content), time = time_text(content);
  return over + (over.empty() || time.empty() ? "" : " \u00b7 ") + time;
}

/// "exact row", "column of u8 codes, ± 3.3 %".
std::string exactness_text(const Scene& scene) {
  const std::string what = scene.line->request.reverse ? "column" : "row";
  const std::string& rounding = scene.call.rounding;
  return rounding.empty() ? "exact " + what : what + " of " + rounding;
}

bool is_masked(const MapLine& line, size_t at) {
  return (!line.masked.empty() && line.masked[at] != 0) ||
         line.values[at] == -std::numeric_limits<float>::infinity();
}

/// Of the tokens that are drawn.
SeenSpecials specials_of(const MapLine& line, const ColourScale& scale, IndexRange drawn) {
  SeenSpecials seen;
  for (auto at = static_cast<size_t>(drawn.begin); at < static_cast<size_t>(drawn.end); ++at) {
    const bool masked = is_masked(line, at);
    seen.masked = seen.masked || masked;
    seen.zeros = seen.zeros || (line.values[at] == 0 && !masked);
    seen.missing = seen.missing || std::isnan(line.values[at]);
  }
  seen.zeros = seen.zeros && line.request.quantity == Quantity::weights &&
               (scale.kind() == ScaleKind::log2 || scale.is_of_nothing());
  return seen;
}

}  // namespace

/// Fits the colours of the line, where something of that has changed.
void QueryPanel::take_line(const Scene& scene) {
  const Made wanted{scene.line, scene.state.product, scene.state.scale, scene.state.colormap,
                    scene.state.segment};
  if (wanted == made_) return;
  made_ = wanted;
  filmed_ = filmed(*shown_side(scene).grid, scene.state.segment);
  const std::vector<float>& values = scene.line->values;
  std::vector<float> scaled(values.size());
  std::transform(values.begin(), values.end(), scaled.begin(), [&](float v) {
    return static_cast<float>(static_cast<double>(v) * scene.factor);
  });
  ColourChoice choice;
  choice.map = scene.scale.map();
  choice.scale = scene.scale.kind();
  const TokenGrid& grid = filmed_;
  const IndexRange video = grid.video_range();
  const std::span<const float> seen =
      grid.has_grid() ? std::span(scaled).subspan(static_cast<size_t>(video.begin),
                                                  static_cast<size_t>(video.size()))
                      : std::span<const float>(scaled);
  scale_ = ColourScale::fit(choice, seen);
  specials_ =
      specials_of(*scene.line, *scale_, grid.has_grid() ? video : IndexRange{0, grid.tokens()});
}

void QueryPanel::controls(const Ui& ui, const ScreenRect& rect, float from, const Scene& scene,
                          PanelRequests& requests) {
  const std::vector<std::string> ways{"Attends to", "Attended by"};
  float width = ui.px(17 * 2);
  for (const std::string& word : ways) width += text_size(ui.fonts.secondary, word).x;
  const bool words = !scene.state.words.chosen.empty();
  bool picked = words || scene.state.query.has_value();
  const float release = text_size(ui.fonts.secondary, "Release").x + ui.px(24);
  // Where there is no room, Esc and the right mouse button release the query too.
  if (rect.x1 - ui.px(8) - width - release < from) picked = false;
  if (picked) width += release;
  const float x = rect.x1 - ui.px(8) - width;
  if (x < from) return;
  ImGui::PushFont(ui.fonts.secondary);
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(ui.px(8), ui.px(2)));
  ImGui::SetCursorScreenPos({x, rect.y0 + ui.px(4)});
  if (picked) {
    const char* const hint = words ? "the query's film again (Esc)" : "follow the mouse again (Q)";
    if (tool_button(ui, "Query/Release", "Release", false, hint)) {
      if (words) {
        WordsLook look = scene.state.words;
        look.chosen.clear();
        requests.act(action::SetWords{look});
      } else {
        requests.act(action::DropQuery{});
      }
    }
    ImGui::SameLine(0, ui.px(8));
  }
  const int taken = segmented(ui, "Query", ways, film_of_columns(scene.state) ? 1 : 0,
                              "where the token looks, or which tokens look at it (R)");
  if (taken >= 0) requests.act(action::SetReverse{(taken == 1) != words});
  ImGui::PopStyleVar();
  ImGui::PopFont();
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
  // A word's film shows the side that queries are picked on.
  filmed.picks = scene.call.same_tokens() || words;
  const bool keys = words ? scene.state.reverse : request.reverse;
  if (filmed.picks) {
    if (!words) filmed.outlined = request.tokens;
    if (words && scene.state.query) filmed.outlined = scene.state.query->tokens;
    filmed.outline = keys ? ui.theme.key : ui.theme.query;
    filmed.other = request.reverse ? ui.theme.query : ui.theme.key;
  }
  film_.take(scene, filmed);
  film_.draw(ui, area, scene, filmed, requests);
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
    const std::string number = std::isnan(values[at])       ? "not there"
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
  const bool sums = !line.request.reverse && weights && !line.request.sum &&
                    scene.call.score != ScoreFunction::sigmoid;
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
  controls(ui, rect, from + ui.px(8), scene, requests);
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
  const std::string no_film = no_words_film(scene.state, scene.call);
  if (!scene.line || !no_film.empty()) {
    put_text(ui, small, left, top, ui.theme.secondary,
             !no_film.empty()                ? fit_text(small, no_film, right - left)
             : scene.call.block > 1          ? "an export of blocks has no single rows"
             : scene.line_pending && columns ? "computing the row sums of all queries \u2026"
             : scene.line_pending            ? "computing \u2026"
                                             : "point at a row of the map");
    end_pane();
    return;
  }
  shown_ = true;
  take_line(scene);
  const TokenNames& side = shown_side(scene);
  what_ = chosen_line_text(scene);
  unit_ = line_unit(scene);
  const std::string who = fit_text(small, what_, right - left);
  const ImU32 colour = scene.line->request.reverse ? ui.theme.key : ui.theme.query;
  put_text(ui, small, left, top, colour, who);
  const float after = left + text_size(small, who).x + ui.px(12);
  const bool film = filmed_.has_grid();
  const float end = film ? right - film_button_width(ui) - ui.px(8) : right;
  const std::string how = fit_text(small, how_text(scene), end - after);
  put_text(ui, small, after, top, ui.theme.secondary, how);
  segment_choice(ui, {after + text_size(small, how).x + ui.px(12), top, end, top + ui.px(20)},
                 scene, requests);
  const float swatches = specials_.any() ? ui.px(kSwatchHeight) : 0;
  const std::string note = film_.problem().empty()
                               ? film_note(scene.state.film, film_.content())
                               : "the video cannot be shown: " + film_.problem();
  const float noted = film && !note.empty() ? ui.px(18) : 0;
  const float bottom = rect.y1 - ui.px(kLegendHeight + 34) - swatches - noted;
  const ScreenRect area{left, top + ui.px(24), right, bottom};
  float legend_top = bottom + ui.px(8);
  if (film) {
    draw_film(ui, area, scene, requests);
    draw_film_button(ui, right, top - ui.px(2), scene, film_.content(), requests);
    legend_top = std::min(legend_top, film_.bottom() + ui.px(12));
  } else {
    draw_list(ui, area, scene, side);
  }
  const std::string caption = unit_ + ", " + std::string(scale_kind_name(scene.state.scale)) +
                              " \u00b7 " + exactness_text(scene) +
                              (film ? ", one range for all frames" : "");
  const float width = std::min(ui.px(360), right - left);
  draw_legend(ui, {left, legend_top, left + width, legend_top + ui.px(kLegendHeight)}, *scale_,
              caption, right - left, nothing_text(specials_));
  const float below = legend_top + ui.px(kLegendHeight + 2);
  draw_swatches(ui, left, below, right - left, specials_);
  draw_shares(ui, left, below + swatches, right - left, scene, side);
  if (noted > 0) {
    put_text(ui, small, left, below + swatches + noted,
             film_.problem().empty() ? ui.theme.secondary : ui.theme.problem,
             fit_text(small, note, right - left));
  }
  end_pane();
}

}  // namespace attnscope
