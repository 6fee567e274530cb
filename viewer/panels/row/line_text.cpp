#include "viewer/panels/row/line_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "core/base/number_words.h"
#include "core/products/line_summary.h"
#include "viewer/panels/row/line_colours.h"
#include "viewer/view/comparison.h"
#include "viewer/view/row/prompt_words.h"
#include "viewer/view/row/words_view.h"

namespace attnscope {

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

std::string how_text(const Scene& scene) {
  if (is_of_words(scene)) {
    return scene.line->request.reverse ? "which tokens look for it" : "where it looks";
  }
  return scene.state.query ? "picked" : "follows the mouse, click to pick";
}

std::string line_unit(const Scene& scene) {
  const LineRequest& request = scene.line->request;
  std::string unit = unit_name(scene.state.product, scene.call.score);
  if (const auto against = scene.state.against()) {
    unit = difference_sign(against->how) + ", " + unit;
  }
  if (request.tokens.size() < 2 || !is_of_words(scene)) return unit;
  return fmt::format("{} of {} words' {}", request.sum ? "sum" : "mean", request.tokens.size(),
                     unit);
}

std::string exactness_text(const Scene& scene) {
  const std::string what = scene.line->request.reverse ? "column" : "row";
  const std::string& rounding = scene.call.rounding;
  return rounding.empty() ? "exact " + what : what + " of " + rounding;
}

std::string share_text(const Scene& scene, const TokenGrid& filmed) {
  const MapLine& line = *scene.line;
  const TokenNames& side = shown_side(scene);
  const IndexRange text = side.grid->text_range();
  const bool weights = line.request.quantity == Quantity::weights;
  const bool sums = !scene.state.against() && !line.request.reverse && weights &&
                    !line.request.sum && scene.call.score != ScoreFunction::sigmoid;
  const auto missing = static_cast<size_t>(
      std::count_if(line.values.begin(), line.values.end(), [](float v) { return std::isnan(v); }));
  if (missing > 0) {
    return fmt::format("{} of {} numbers are not in the file (hatched)", missing,
                       line.values.size());
  }
  if (is_of_words(scene) && line.request.reverse && weights && filmed.has_grid()) {
    const IndexRange video = filmed.video_range();
    const double mean = mass_on(line.values, video) / static_cast<double>(video.size());
    const bool share = is_normalised(scene.call.score);
    return (share ? share_words(mean) : number_words(mean)) +
           " of a row on average over these frames";
  }
  if (text.empty() || !sums) return "";
  const int64_t best = largest_tokens(line.values, text, 1).front();
  return fmt::format("{} on text, most on {} ({})", share_words(mass_on(line.values, text), 2),
                     token_text(side, best),
                     share_words(static_cast<double>(line.values[static_cast<size_t>(best)]), 2));
}

std::string no_line_text(const Scene& scene) {
  const std::string no_film = no_words_film(scene.state, scene.call);
  if (!no_film.empty()) return no_film;
  if (scene.line) return "";
  if (scene.call.block > 1) return "an export of blocks has no single rows";
  if (scene.line_pending && film_of_columns(scene.state)) {
    return "computing the row sums of all queries \u2026";
  }
  return scene.line_pending ? "computing \u2026" : "point at a row of the map";
}

}  // namespace attnscope
