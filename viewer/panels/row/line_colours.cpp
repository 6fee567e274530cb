#include "viewer/panels/row/line_colours.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "viewer/view/comparison.h"
#include "viewer/view/value_range.h"

namespace attnscope {

const TokenNames& shown_side(const Scene& scene) {
  return scene.line->request.reverse ? scene.queries : scene.keys;
}

const TokenNames& chosen_side(const Scene& scene) {
  return scene.line->request.reverse ? scene.keys : scene.queries;
}

bool is_masked(const MapLine& line, size_t at) {
  return (!line.masked.empty() && line.masked[at] != 0) ||
         line.values[at] == -std::numeric_limits<float>::infinity();
}

namespace {

/// The upper bound of the line's numbers: rows that were added up have more than one row's mass.
double line_most(const Scene& scene) {
  const LineRequest& request = scene.line->request;
  const double rows =
      request.sum && !request.reverse ? static_cast<double>(request.tokens.size()) : 1;
  return rows * shown_most(scene.state, scene.call.score, scene.call.keys.tokens());
}

/// Of a difference as the map's: signed ones as far below 0 as above.
ColourScale fit_colours(const Scene& scene, ColourChoice choice, std::span<const float> seen) {
  const std::optional<Against> against = scene.state.against();
  if (!against || !is_signed(against->how)) {
    return bounded_scale(ColourScale::fit(choice, seen), line_most(scene));
  }
  double end = 0;
  for (const float v : seen) {
    if (std::isfinite(v)) end = std::max(end, std::abs(static_cast<double>(v)));
  }
  if (end == 0) return ColourScale::of_nothing(choice.map, choice.scale);
  return {choice.map, choice.scale, {-end, end}};
}

}  // namespace

ColourScale line_scale(const Scene& scene, const TokenGrid& filmed) {
  const std::vector<float>& values = scene.line->values;
  std::vector<float> scaled(values.size());
  std::transform(values.begin(), values.end(), scaled.begin(), [&](float v) {
    return static_cast<float>(static_cast<double>(v) * scene.factor);
  });
  ColourChoice choice;
  choice.map = scene.scale.map();
  choice.scale = scene.scale.kind();
  if (!filmed.has_grid()) return fit_colours(scene, choice, scaled);
  const IndexRange video = filmed.video_range();
  return fit_colours(scene, choice,
                     std::span(scaled).subspan(static_cast<size_t>(video.begin),
                                               static_cast<size_t>(video.size())));
}

std::vector<uint8_t> evicted_of(const Scene& scene, const TokenGrid& filmed) {
  if (scene.call.evicted.empty()) return {};
  return evicted_line(scene.call.evicted, scene.line->request.tokens, filmed.tokens(),
                      scene.line->request.reverse);
}

SeenSpecials specials_of(const MapLine& line, const ColourScale& scale,
                         const std::vector<uint8_t>& evicted, IndexRange drawn) {
  SeenSpecials seen;
  for (auto at = static_cast<size_t>(drawn.begin); at < static_cast<size_t>(drawn.end); ++at) {
    const bool masked = is_masked(line, at);
    const bool dropped = !evicted.empty() && evicted[at] != 0;
    seen.evicted = seen.evicted || dropped;
    seen.masked = seen.masked || (masked && !dropped);
    seen.zeros = seen.zeros || (line.values[at] == 0 && !masked);
    seen.missing = seen.missing || std::isnan(line.values[at]);
  }
  seen.zeros = seen.zeros && line.request.quantity == Quantity::weights &&
               (scale.kind() == ScaleKind::log2 || scale.is_of_nothing());
  return seen;
}

}  // namespace attnscope
