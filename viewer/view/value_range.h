#pragma once

#include <cstdint>
#include <limits>

#include "core/problem/score.h"
#include "io/pictures/colour_scale.h"
#include "viewer/view/value_histogram.h"
#include "viewer/view/view_state.h"

namespace attnscope {

/// The factor from weights to the product that is shown: the number of keys for lift, else 1.
double product_factor(ViewProduct product, int64_t keys);

/// The factor from the numbers of tiles to those that are shown: product_factor(), but 1 for
/// ratios, which have no unit.
double shown_factor(const ViewState& state, int64_t keys);

/// The largest size that a shown number can have: 1 for shares of a row and for differences of two,
/// times the keys for lift; without end for logits, ratios and weights of either sign.
double shown_most(const ViewState& state, ScoreFunction score, int64_t keys);
/// A range that a margin has widened beyond what its values can be ends there, and its low end
/// leaves half of that at least.
ValueRange bounded_range(const ValueRange& range, double most);
/// The scale over its bounded_range(); a scale of nothing stays as it is.
ColourScale bounded_scale(const ColourScale& scale, double most);

/// Without an end that is known.
inline constexpr double kNoMost = std::numeric_limits<double>::infinity();

/// The values at the ends of the colours: those that were set, or the histogram's automatic range,
/// widened where that is next to nothing (as ColourScale::fit does). With nothing in the histogram,
/// a sixteenth to sixteen times an even row's weight, or logits of −1 to 1. Of signed differences
/// the ends are as far below 0 as above: 99.8 % of what is seen lies between them. From the least
/// to the greatest of what is seen where the state says so. In the units of the product; none that
/// was not set lies beyond `most`, shown_most().
ValueRange shown_range(const ViewState& state, const ValueHistogram& histogram, int64_t keys,
                       double most = kNoMost);

/// The shares of what is seen that lie below and above a scale's range (in the units of the
/// product), and so have the colours of its ends; 0 where the histogram has not counted what the
/// state shows.
ValueHistogram::Beyond shown_beyond(const ViewState& state, const ValueHistogram& histogram,
                                    const ColourScale& scale, int64_t keys);

/// The colours of a state over a range: units, values, colours and ticks. Throws Error(usage) where
/// the state's colour map is not known.
ColourScale shown_scale(const ViewState& state, const ValueRange& range);
/// The state's scale over shown_range(); of nothing where the range is automatic and all that is
/// seen is 0, masked or missing.
ColourScale shown_scale(const ViewState& state, const ValueHistogram& histogram, int64_t keys,
                        double most = kNoMost);

}  // namespace attnscope
