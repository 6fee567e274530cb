#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/number_words.h"
#include "io/pictures/colormap.h"
#include "io/pictures/picture_style.h"

namespace attnscope {

/// How values are spread over the colours: by their logarithm, as they are, by their square root,
/// or by the logarithm of their distance from 0 on both sides of it (symlog), which is nearly
/// linear below a 1024th of the range's larger end.
enum class ScaleKind : uint8_t { log2, linear, sqrt, symlog };
/// "log", "linear", "sqrt", "symlog".
std::string_view scale_kind_name(ScaleKind kind);
std::optional<ScaleKind> parse_scale_kind(std::string_view name);
std::vector<std::string> scale_kind_names();

/// The values at the two ends of the colours; low < high.
struct ValueRange {
  double low = 0;
  double high = 0;
};

/// At least an octave (log2), or where low and high are next to the same, half of their size more
/// on both sides: an even row is shown in the middle of the colours.
ValueRange widened_range(ValueRange range, ScaleKind kind);

/// Where the ends come from: quantiles of the values, or given.
struct RangeChoice {
  bool quantiles = true;
  double low =
      0.01;  ///< a quantile in 0…1, or a value; two equal values: there is nothing to scale
  double high = 0.999;
  /// True where the mass has a say (core/base/mass_range.h): mass_keeping_end() raises the high
  /// quantile, and on a log scale mass_covering_end() takes the place of the low one. Percentiles
  /// that somebody asks for stay as they are.
  bool keeps_mass = true;
};

/// "auto" (from 1 %, or where the mass is, to 99.9 %, keeping the mass), "LO:HI" or "pA:pB" with
/// percents. Throws Error(usage) otherwise; `option` is how its message names the text.
RangeChoice parse_range_choice(std::string_view text, std::string_view option);

/// The user's choice of a picture's colours.
struct ColourChoice {
  Colormap map = Colormap::viridis;
  ScaleKind scale = ScaleKind::log2;
  RangeChoice range;
};
/// Throws Error(usage) where a given range has values that the scale cannot show (0 on a log
/// scale).
void check_colour_choice(const ColourChoice& choice, std::string_view option);

/// A place on the colour bar, 0 at its low end and 1 at its high end.
struct ScaleTick {
  double unit = 0;
  std::string label;
};

/// From values to colours. A value, immutable.
class ColourScale {
 public:
  /// The range must suit the scale: see check_colour_choice().
  ColourScale(Colormap map, ScaleKind kind, ValueRange range)
      : map_(map), kind_(kind), range_(range) {}
  /// The chosen range, by quantiles of the finite values that are not 0 (greater than 0 for log and
  /// sqrt; interpolated as NumPy does), as far as the mass has no say, widened to an octave
  /// (linear, sqrt: where it is a single value, by half of it) so that an even row is shown in the
  /// middle of the colours: see widened_range(). Where no value is left, of_nothing().
  /// has_values() is false where none is finite.
  static ColourScale fit(const ColourChoice& choice, std::span<const float> values);

  /// For values of which none counts (all 0, masked or missing): there is nothing to scale, and a
  /// legend says so. The range, 0.5 to 1, means nothing; that of differences has 0 in the middle of
  /// the colours.
  static ColourScale of_nothing(Colormap map, ScaleKind kind);
  bool is_of_nothing() const { return of_nothing_; }
  bool has_values() const { return has_values_; }
  /// This scale, with another colour for what a log scale cannot show.
  ColourScale with_masked(Rgb colour) const {
    ColourScale scale = *this;
    scale.masked_ = colour;
    return scale;
  }

  Colormap map() const { return map_; }
  ScaleKind kind() const { return kind_; }
  const ValueRange& range() const { return range_; }
  /// The value on the scale that is spread evenly over the colours: log₂ v, v, √v or
  /// sign(v)·log₂(1 + |v| / linear_part()). The value must be one that the scale can show.
  double transformed(double value) const;
  /// Symlog: the size of values up to which it is about linear.
  double linear_part() const;
  /// 0…1 within the range, less or more beyond it; −inf for what the scale cannot show.
  double unit(double value) const;
  /// The value at a unit of 0…1.
  double value_at(double unit) const;
  /// Beyond the range the colour of its end. What a log scale cannot show (0, masked) has a colour
  /// that no colour map has, as a style says; by itself darker than any. NaN too.
  Rgb colour(double value) const;
  /// Round values with labels of one notation (core/base/number_words.h), ascending, at least `gap`
  /// (of the bar's length) apart. At least two for gap ≤ 0.5.
  std::vector<ScaleTick> ticks(double gap, TickNotation notation = {}) const;
  /// True where ticks() writes them as powers of ten, also when they count in 10^unit.
  bool needs_powers(double gap, int unit = 0) const;

 private:
  std::vector<double> tick_values(double gap) const;
  std::vector<double> round_values(double gap) const;
  std::vector<double> symlog_tick_values(double gap) const;

  Colormap map_;
  ScaleKind kind_;
  ValueRange range_;
  bool of_nothing_ = false, has_values_ = true;
  Rgb masked_ = PictureStyle().masked_cell;
};

}  // namespace attnscope
