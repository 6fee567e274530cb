#include "viewer/panels/line_colours.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace attnscope {

const TokenNames& shown_side(const Scene& scene) {
  return scene.line->request.reverse ? scene.queries : scene.keys;
}

const TokenNames& chosen_side(const Scene& scene) {
  return scene.line->request.reverse ? scene.keys : scene.queries;
}

std::string chosen_text(const Scene& scene) {
  const auto& tokens = scene.line->request.tokens;
  if (tokens.size() > 1) return fmt::format("mean of {} tokens", tokens.size());
  return token_text(chosen_side(scene), tokens.front());
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
