#include "viewer/panels/line_colours.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "viewer/panels/widgets.h"
#include "viewer/view/prompt_words.h"

namespace attnscope {

const TokenNames& shown_side(const Scene& scene) {
  return scene.line->request.reverse ? scene.queries : scene.keys;
}

const TokenNames& chosen_side(const Scene& scene) {
  return scene.line->request.reverse ? scene.keys : scene.queries;
}

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

std::string line_unit(const Scene& scene) {
  const LineRequest& request = scene.line->request;
  const std::string unit = unit_name(scene.state.product, scene.call.score);
  if (request.tokens.size() < 2 || !is_of_words(scene)) return unit;
  return fmt::format("{} of {} words' {}", request.sum ? "sum" : "mean", request.tokens.size(),
                     unit);
}

std::string exactness_text(const Scene& scene) {
  const std::string what = scene.line->request.reverse ? "column" : "row";
  const std::string& rounding = scene.call.rounding;
  return rounding.empty() ? "exact " + what : what + " of " + rounding;
}

bool is_masked(const MapLine& line, size_t at) {
  return (!line.masked.empty() && line.masked[at] != 0) ||
         line.values[at] == -std::numeric_limits<float>::infinity();
}

ColourScale line_scale(const Scene& scene, const TokenGrid& filmed) {
  const std::vector<float>& values = scene.line->values;
  std::vector<float> scaled(values.size());
  std::transform(values.begin(), values.end(), scaled.begin(), [&](float v) {
    return static_cast<float>(static_cast<double>(v) * scene.factor);
  });
  ColourChoice choice;
  choice.map = scene.scale.map();
  choice.scale = scene.scale.kind();
  if (!filmed.has_grid()) return ColourScale::fit(choice, scaled);
  const IndexRange video = filmed.video_range();
  return ColourScale::fit(choice, std::span(scaled).subspan(static_cast<size_t>(video.begin),
                                                            static_cast<size_t>(video.size())));
}

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

}  // namespace attnscope
