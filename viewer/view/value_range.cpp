#include "viewer/view/value_range.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "viewer/view/wanted_tiles.h"

namespace attnscope {
namespace {

/// With nothing seen yet: so many times an even row's weight, up and down.
constexpr double kUnseenSpan = 16;

}  // namespace

double product_factor(ViewProduct product, int64_t keys) {
  return product == ViewProduct::lift ? static_cast<double>(keys) : 1;
}

namespace {

/// True where the histogram has counted the quantity and difference that the state shows.
bool counts_shown(const ViewState& state, const ValueHistogram& histogram) {
  return histogram.quantity() == product_quantity(state.product) &&
         histogram.against() == state.against();
}

/// As far below 0 as above.
ValueRange signed_range(const ViewState& state, const ValueHistogram& histogram, int64_t keys) {
  constexpr double kTail = 0.001;
  const double factor = shown_factor(state, keys);
  std::optional<ValueRange> seen;
  if (counts_shown(state, histogram)) {
    seen = state.other->range.whole ? histogram.extent() : histogram.quantiles(kTail, 1 - kTail);
  }
  double end = 0;
  if (seen) end = std::max(std::abs(seen->low), std::abs(seen->high)) * factor;
  if (end > 0) return {-end, end};
  const bool of_weights = state.product != ViewProduct::logits &&
                          state.other->difference == Difference::signed_difference;
  const double usual = of_weights ? factor / static_cast<double>(keys) : 1;
  return {-usual, usual};
}

}  // namespace

double shown_factor(const ViewState& state, int64_t keys) {
  const bool ratio = state.against() && state.against()->how == Difference::log_ratio;
  return ratio ? 1 : product_factor(state.product, keys);
}

double shown_most(const ViewState& state, ScoreFunction score, int64_t keys) {
  const bool ratio = state.against() && state.against()->how == Difference::log_ratio;
  if (state.product == ViewProduct::logits || is_signed(score) || ratio) return kNoMost;
  return shown_factor(state, keys);
}

ValueRange bounded_range(const ValueRange& range, double most) {
  if (range.high <= most) return range;
  return {std::min(range.low, most / 2), most};
}

ColourScale bounded_scale(const ColourScale& scale, double most) {
  if (scale.is_of_nothing()) return scale;
  return {scale.map(), scale.kind(), bounded_range(scale.range(), most)};
}

ValueRange shown_range(const ViewState& state, const ValueHistogram& histogram, int64_t keys,
                       double most) {
  const ColourRange& chosen = state.against() ? state.other->range : state.range;
  if (!chosen.automatic) return {chosen.low, chosen.high};
  if (state.against() && is_signed(state.other->difference)) {
    const ValueRange range = signed_range(state, histogram, keys);
    return {std::max(range.low, -most), std::min(range.high, most)};
  }
  const double factor = product_factor(state.product, keys);
  std::optional<ValueRange> seen;
  if (counts_shown(state, histogram)) {
    seen = chosen.whole ? histogram.extent() : histogram.automatic_range(state.scale);
  }
  if (seen) {
    return bounded_range(widened_range({seen->low * factor, seen->high * factor}, state.scale),
                         most);
  }
  if (state.product == ViewProduct::logits) return {-1, 1};
  const double even = factor / static_cast<double>(keys);
  return bounded_range({even / kUnseenSpan, even * kUnseenSpan}, most);
}

ValueHistogram::Beyond shown_beyond(const ViewState& state, const ValueHistogram& histogram,
                                    const ColourScale& scale, int64_t keys) {
  if (!counts_shown(state, histogram) || scale.is_of_nothing()) return {};
  const double factor = shown_factor(state, keys);
  return histogram.beyond({scale.range().low / factor, scale.range().high / factor});
}

ColourScale shown_scale(const ViewState& state, const ValueRange& range) {
  const auto map = parse_colormap(state.colormap);
  if (!map) throw usage_error(fmt::format("colormap {}: no such name", one_line(state.colormap)));
  if (!state.against()) return {*map, state.scale, range};
  const Difference how = state.other->difference;
  return {is_signed(how) ? Colormap::coolwarm : *map, difference_scale(state.scale, how), range};
}

ColourScale shown_scale(const ViewState& state, const ValueHistogram& histogram, int64_t keys,
                        double most) {
  const ColourScale scale = shown_scale(state, shown_range(state, histogram, keys, most));
  const ColourRange& chosen = state.against() ? state.other->range : state.range;
  const bool nothing =
      chosen.automatic && counts_shown(state, histogram) && histogram.has_nothing_to_scale();
  return nothing ? ColourScale::of_nothing(scale.map(), scale.kind()) : scale;
}

}  // namespace attnscope
