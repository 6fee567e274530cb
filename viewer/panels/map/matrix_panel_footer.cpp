#include "viewer/panels/map/matrix_panel.h"

#include <fmt/core.h>

#include <algorithm>

#include "viewer/panels/legend.h"
#include "viewer/panels/map/mask_chip.h"
#include "viewer/view/comparison.h"

// Below the map: the bar of its colours, what is shown of which head, and how well it is known.

namespace attnscope {
namespace {

/// The caption of a difference's colours: of which heads, of how many entries, taken how.
std::string difference_caption(const Scene& scene, int level) {
  const ViewState& s = scene.state;
  const Difference how = s.other->difference;
  std::string text = difference_sign(how) + ": " +
                     sides_text(scene.picker.values(s.head),
                                scene.other.picker.values(s.other->head), scene.other.of_second) +
                     ", ";
  text += how == Difference::log_ratio ? "weights" : unit_name(s.product, scene.call.score) + "s";
  text += ", " + std::string(scale_kind_name(scene.scale.kind()));
  if (level == 0) return text;
  const int64_t side = int64_t{1} << level;
  const char* const pooled = s.pool == Pool::mean ? "mean"
                             : is_signed(how)     ? "largest in size"
                                                  : "max";
  return text + fmt::format(" \u00b7 {0} of {1}\u00d7{1} differences", pooled, side);
}

std::string texel_text(int level, int64_t block) {
  const int64_t side = std::max(block, int64_t{1} << level);
  return side == 1 ? "" : fmt::format("{0}\u00d7{0} entries", side);
}

/// The caption of the map's colours: the unit, the scale, and how many entries a texel pools.
std::string map_caption(const Scene& scene, int level) {
  const ViewState& s = scene.state;
  if (s.against()) return difference_caption(scene, level);
  std::string caption =
      unit_name(s.product, scene.call.score) + ", " + std::string(scale_kind_name(s.scale));
  const std::string texel = texel_text(level, scene.call.block);
  if (!texel.empty()) caption += fmt::format(" \u00b7 {} of {}", pool_name(s.pool), texel);
  return caption;
}

/// True while the automatic range of the colours still waits for values that are seen.
bool awaits_values(const Scene& scene) {
  const ViewState& s = scene.state;
  const bool automatic = (s.against() ? s.other->range : s.range).automatic;
  return automatic && scene.histogram.empty() && !scene.histogram.has_nothing_to_scale();
}

}  // namespace

std::string resolution_text(const SeenExactness& seen, const MapSource& call, Pool pool) {
  if (!seen.complete) return seen.failed ? "failed" : "computing";
  if (seen.exact) return call.rounding.empty() ? "exact" : call.rounding;
  if (seen.sampled_rows == 0) {
    const std::string coarser =
        fmt::format("in part {} of {}", pool_name(pool), texel_text(seen.coarsest, call.block));
    return coarser + (seen.failed ? ", the rest failed" : ", refining");
  }
  const int64_t rows = int64_t{1} << seen.level;
  const char* const rest = seen.failed ? ", the rest failed" : "";
  // A row that stands for its neighbours is a sample, though a texel is no higher.
  if (seen.sampled_rows >= rows) return fmt::format("sampled rows{}", rest);
  return fmt::format("sampled {} of {} rows{}", seen.sampled_rows, rows, rest);
}

void MatrixPanel::draw_footer(const Ui& ui, const ScreenRect& area, const Scene& scene,
                              PanelRequests& requests) const {
  const ViewState& s = scene.state;
  std::string caption = map_caption(scene, seen_.level);
  if (notation_.power) caption += " \u00b7 numbers " + times_power_of_ten(*notation_.power);
  caption += " \u00b7 " + resolution_text(seen_, scene.call, s.pool);
  const float room = area.width() - ui.px(kMiniSide + 24);
  const float width = std::min(ui.px(360), room);
  SeenSpecials specials = seen_specials(scene);
  specials.dropped = scene.mask && scene.mask->problem.empty();
  const ScreenRect bar{area.x0, area.y0 + ui.px(10), area.x0 + width, area.y0 + ui.px(62)};
  if (awaits_values(scene)) {
    draw_no_legend(ui, bar, caption, room,
                   seen_.failed ? "there are no values" : "computing \u2026");
  } else {
    draw_legend(ui, bar, scene.scale, scene.beyond, caption, room, nothing_text(specials));
  }
  ImFont* const small = ui.fonts.secondary;
  const HeadPicker& others = scene.other.picker;
  std::string about =
      scene.other.shown ? "B: " + others.short_title(s.head) : scene.picker.short_title(s.head);
  if (s.other) about = "A: " + about + "   B: " + others.short_title(s.other->head);
  for (const std::string& part :
       {scene.call.precision, scene.call.about, softmax_text(scene.call)}) {
    if (!part.empty()) about += " \u00b7 " + part;
  }
  put_fitting(ui, small, area.x0, area.y0 + ui.px(70), room, ui.theme.secondary, about);
  const float y = area.y0 + ui.px(86);
  const float chip = draw_mask_chip(ui, area.x0 + room, y, room, scene, requests);
  draw_swatches(ui, area.x0, y, room - chip, specials);
}

}  // namespace attnscope
