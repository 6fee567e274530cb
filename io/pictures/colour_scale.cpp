#include "io/pictures/colour_scale.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/base/mass_range.h"
#include "core/base/number_words.h"
#include "io/pictures/picture_style.h"

namespace attnscope {
namespace {

constexpr std::array<std::string_view, 4> kScaleNames{"log", "linear", "sqrt", "symlog"};
/// Of the range's larger end, the part below which symlog is about linear: ten octaves are seen.
constexpr double kLinearPart = 1.0 / 1024;

/// numpy's default: linear between the neighbours in order. `sorted` must not be empty.
double quantile(const std::vector<float>& sorted, double q) {
  const double at = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(at);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  const double part = at - static_cast<double>(below);
  return sorted[below] + part * (static_cast<double>(sorted[above]) - sorted[below]);
}

/// The ends of an automatic range over values in order.
ValueRange mass_range(ValueRange quantiles, ScaleKind kind, const std::vector<float>& sorted) {
  double total = 0;
  for (const float value : sorted) total += std::max(0.0, double{value});
  std::vector<ValueMass> beyond;
  const auto above = [&](float value) { return double{value} > quantiles.high; };
  std::for_each(std::find_if(sorted.begin(), sorted.end(), above), sorted.end(), [&](float value) {
    beyond.push_back({double{value}, std::max(0.0, double{value})});
  });
  quantiles.high = mass_keeping_end(quantiles.high, beyond, total);
  if (kind != ScaleKind::log2) return quantiles;
  const auto at = [&](size_t i) { return ValueMass{double{sorted[i]}, double{sorted[i]}}; };
  quantiles.low = mass_covering_end(sorted.size(), at, total);
  return quantiles;
}

/// As many ticks at most as are `gap` of the axis apart, two at least.
int most_ticks(double gap) { return 1 + static_cast<int>(1 / std::min(gap, 0.5) + 1e-9); }

std::optional<double> parse_number(std::string_view text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || text.empty() || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

}  // namespace

std::string_view scale_kind_name(ScaleKind kind) { return kScaleNames[static_cast<size_t>(kind)]; }

std::optional<ScaleKind> parse_scale_kind(std::string_view name) {
  for (size_t i = 0; i < kScaleNames.size(); ++i) {
    if (kScaleNames[i] == name) return static_cast<ScaleKind>(i);
  }
  return std::nullopt;
}

std::vector<std::string> scale_kind_names() { return {kScaleNames.begin(), kScaleNames.end()}; }

ValueRange widened_range(ValueRange range, ScaleKind kind) {
  if (kind == ScaleKind::log2) {
    const double octaves = std::log2(range.high / range.low);
    if (octaves >= 1) return range;
    const double more = std::exp2((1 - octaves) / 2);
    return {range.low / more, range.high * more};
  }
  const double size = std::max(std::abs(range.low), std::abs(range.high));
  if (range.high - range.low > 1e-6 * size) return range;
  return {range.low - size / 2, range.high + size / 2};
}

RangeChoice parse_range_choice(std::string_view text, std::string_view option) {
  if (text == "auto") return {};
  const auto fail = [&](std::string_view what) {
    return usage_error(fmt::format("{} {}: {}", option, text, what));
  };
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) {
    throw fail("expected auto, LO:HI or percentiles pA:pB, for example 0:0.01 or p1:p99.9");
  }
  std::string_view low = text.substr(0, colon);
  std::string_view high = text.substr(colon + 1);
  const bool percent = low.starts_with('p') && high.starts_with('p');
  if (percent) {
    low.remove_prefix(1);
    high.remove_prefix(1);
  }
  const auto first = parse_number(low);
  const auto last = parse_number(high);
  if (!first || !last) throw fail("expected two numbers LO:HI, or two percentiles pA:pB");
  if (*first >= *last) throw fail("the low end must be below the high end");
  if (!percent) return {false, *first, *last};
  if (*first < 0 || *last > 100) throw fail("percentiles are between 0 and 100");
  return {true, *first / 100, *last / 100, false};
}

void check_colour_choice(const ColourChoice& choice, std::string_view option) {
  if (choice.range.quantiles) return;
  const double low = choice.range.low;
  if (choice.scale == ScaleKind::log2 && low <= 0) {
    throw usage_error(fmt::format(
        "{} {:g}:{:g}: a log scale needs a low end above 0; take another scale or range", option,
        low, choice.range.high));
  }
  if (choice.scale == ScaleKind::sqrt && low < 0) {
    throw usage_error(fmt::format("{} {:g}:{:g}: a sqrt scale needs a low end of 0 or more", option,
                                  low, choice.range.high));
  }
}

ColourScale ColourScale::fit(const ColourChoice& choice, std::span<const float> values) {
  ColourScale nothing = of_nothing(choice.map, choice.scale);
  nothing.has_values_ =
      std::any_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); });
  if (!choice.range.quantiles) {
    if (choice.range.low == choice.range.high) return nothing;
    return {choice.map, choice.scale, {choice.range.low, choice.range.high}};
  }
  std::vector<float> counted;
  const bool positive = choice.scale == ScaleKind::log2 || choice.scale == ScaleKind::sqrt;
  std::copy_if(values.begin(), values.end(), std::back_inserter(counted),
               [&](float v) { return std::isfinite(v) && (positive ? v > 0 : v != 0); });
  if (counted.empty()) return nothing;
  std::sort(counted.begin(), counted.end());
  ValueRange range{quantile(counted, choice.range.low), quantile(counted, choice.range.high)};
  if (choice.range.keeps_mass) range = mass_range(range, choice.scale, counted);
  return {choice.map, choice.scale, widened_range(range, choice.scale)};
}

ColourScale ColourScale::of_nothing(Colormap map, ScaleKind kind) {
  const bool differences = map == Colormap::coolwarm;
  ColourScale scale(map, kind, differences ? ValueRange{-1, 1} : ValueRange{0.5, 1});
  scale.of_nothing_ = true;
  return scale;
}

double ColourScale::linear_part() const {
  return std::max(std::abs(range_.low), std::abs(range_.high)) * kLinearPart;
}

double ColourScale::transformed(double value) const {
  switch (kind_) {
    case ScaleKind::log2:
      return std::log2(value);
    case ScaleKind::sqrt:
      return std::sqrt(value);
    case ScaleKind::symlog:
      return std::copysign(std::log2(1 + std::abs(value) / linear_part()), value);
    case ScaleKind::linear:
      break;
  }
  return value;
}

double ColourScale::unit(double value) const {
  constexpr double kNone = -std::numeric_limits<double>::infinity();
  switch (kind_) {
    case ScaleKind::log2:
      if (!(value > 0)) return kNone;
      return std::log2(value / range_.low) / std::log2(range_.high / range_.low);
    case ScaleKind::sqrt: {
      if (!(value >= 0)) return kNone;
      const double low = std::sqrt(range_.low);
      return (std::sqrt(value) - low) / (std::sqrt(range_.high) - low);
    }
    case ScaleKind::symlog: {
      if (std::isnan(value)) return kNone;
      const double low = transformed(range_.low);
      return (transformed(value) - low) / (transformed(range_.high) - low);
    }
    case ScaleKind::linear:
      break;
  }
  return std::isnan(value) ? kNone : (value - range_.low) / (range_.high - range_.low);
}

double ColourScale::value_at(double unit) const {
  switch (kind_) {
    case ScaleKind::log2:
      return range_.low * std::exp2(unit * std::log2(range_.high / range_.low));
    case ScaleKind::sqrt: {
      const double low = std::sqrt(range_.low);
      const double root = low + unit * (std::sqrt(range_.high) - low);
      return root * root;
    }
    case ScaleKind::symlog: {
      const double low = transformed(range_.low);
      const double place = low + unit * (transformed(range_.high) - low);
      return std::copysign((std::exp2(std::abs(place)) - 1) * linear_part(), place);
    }
    case ScaleKind::linear:
      break;
  }
  return range_.low + unit * (range_.high - range_.low);
}

Rgb ColourScale::colour(double value) const {
  if (std::isnan(value) || (kind_ == ScaleKind::log2 && !(value > 0))) return masked_;
  return colormap_at(map_, unit(value));
}

std::vector<double> ColourScale::round_values(double gap) const {
  if (kind_ == ScaleKind::symlog) return symlog_tick_values(gap);
  const std::vector<double> all = kind_ == ScaleKind::log2
                                      ? log_ticks(range_.low, range_.high, most_ticks(gap))
                                      : linear_ticks(range_.low, range_.high, most_ticks(gap));
  // On a sqrt scale round values crowd at one end: the largest come first, the crowd stays out.
  std::vector<double> values;
  for (auto value = all.rbegin(); value != all.rend(); ++value) {
    if (values.empty() || unit(values.back()) - unit(*value) >= gap * (1 - 1e-9)) {
      values.push_back(*value);
    }
  }
  std::reverse(values.begin(), values.end());
  return values;
}

std::vector<double> ColourScale::symlog_tick_values(double gap) const {
  // 0 first, then powers of ten from the largest down, then round values between them: what comes
  // first keeps its place.
  std::vector<double> wanted{0};
  const double largest = std::max(std::abs(range_.low), std::abs(range_.high));
  const auto top = static_cast<int>(std::floor(std::log10(largest) + 1e-9));
  const auto bottom = static_cast<int>(std::floor(std::log10(linear_part())));
  for (int e = top; e >= bottom; --e) {
    for (const double sign : {1.0, -1.0}) wanted.push_back(sign * std::pow(10.0, e));
  }
  std::vector<double> between = linear_ticks(range_.low, range_.high, most_ticks(gap));
  // The ends before the middle, and both sides alike.
  std::sort(between.begin(), between.end(), [](double a, double b) {
    return std::abs(a) != std::abs(b) ? std::abs(a) > std::abs(b) : a > b;
  });
  wanted.insert(wanted.end(), between.begin(), between.end());
  std::vector<double> values;
  for (const double value : wanted) {
    const double place = unit(value);
    const bool fits = place > -1e-9 && place < 1 + 1e-9 &&
                      std::all_of(values.begin(), values.end(), [&](double other) {
                        return std::abs(unit(other) - place) >= gap * (1 - 1e-9);
                      });
    if (fits) values.push_back(value);
  }
  std::sort(values.begin(), values.end());
  return values;
}

std::vector<double> ColourScale::tick_values(double gap) const {
  std::vector<double> values = round_values(gap);
  if (values.size() < 2) values = {range_.low, range_.high};
  return values;
}

bool ColourScale::needs_powers(double gap, int unit) const {
  if (of_nothing_) return false;
  std::vector<double> counted = tick_values(gap);
  for (double& value : counted) value /= std::pow(10.0, unit);
  return need_powers(counted);
}

std::vector<ScaleTick> ColourScale::ticks(double gap, TickNotation notation) const {
  const std::vector<double> values = tick_values(gap);
  const std::vector<std::string> words = tick_words(values, notation);
  std::vector<ScaleTick> ticks;
  for (size_t i = 0; i < values.size(); ++i) {
    ticks.push_back({std::clamp(unit(values[i]), 0.0, 1.0), words[i]});
  }
  return ticks;
}

}  // namespace attnscope
