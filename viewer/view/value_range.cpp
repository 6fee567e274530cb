#include "viewer/view/value_range.h"

#include <fmt/core.h>

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

ValueRange shown_range(const ViewState& state, const ValueHistogram& histogram, int64_t keys) {
  if (!state.range.automatic) return {state.range.low, state.range.high};
  const double factor = product_factor(state.product, keys);
  const auto seen = histogram.quantity() == product_quantity(state.product)
                        ? histogram.automatic_range()
                        : std::nullopt;
  if (seen) {
    return widened_range({seen->low * factor, seen->high * factor}, state.scale);
  }
  if (state.product == ViewProduct::logits) return {-1, 1};
  const double even = factor / static_cast<double>(keys);
  return {even / kUnseenSpan, even * kUnseenSpan};
}

ColourScale shown_scale(const ViewState& state, const ValueRange& range) {
  const auto map = parse_colormap(state.colormap);
  if (!map) throw usage_error(fmt::format("colormap {}: no such name", one_line(state.colormap)));
  return {*map, state.scale, range};
}

ColourScale shown_scale(const ViewState& state, const ValueHistogram& histogram, int64_t keys) {
  const ColourScale scale = shown_scale(state, shown_range(state, histogram, keys));
  const bool nothing = state.range.automatic &&
                       histogram.quantity() == product_quantity(state.product) &&
                       histogram.has_nothing_to_scale();
  return nothing ? ColourScale::of_nothing(scale.map(), scale.kind()) : scale;
}

}  // namespace attnscope
