#include "io/pictures/chart/chart_axis.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/number_words.h"

namespace attnscope {
namespace {

/// Room beside the outermost values, as a part of the axis.
constexpr double kRoom = 0.04;

ValueRange range_of_names(const std::vector<ChartAxis::Name>& names) {
  return {names.front().at - 0.5, names.back().at + 0.5};
}

/// Room of as much of the logarithms on both sides.
ValueRange log_range(double low, double high) {
  if (high <= low) return {low / 2, high * 2};
  const double more = std::pow(high / low, kRoom);
  return {low / more, high * more};
}

ValueRange linear_range(double low, double high) {
  if (high <= low) {
    const double half = low == 0 ? 1 : std::abs(low) / 2;
    return {low == 0 ? 0 : low - half, high + half};
  }
  const double room = kRoom * (high - low);
  // Axes of sizes begin at 0 unless that would press all into a corner.
  const bool from_zero = low >= 0 && low < (high - low);
  return {from_zero ? 0 : low - room, high + room};
}

}  // namespace

AxisScale::AxisScale(const ChartAxis& axis, std::span<const double> values) : axis_(axis) {
  if (axis.range) {
    range_ = *axis.range;
    return;
  }
  if (!axis.names.empty()) {
    range_ = range_of_names(axis.names);
    return;
  }
  bool any = false;
  double low = 0, high = 1;
  for (const double value : values) {
    if (!shows(value)) continue;
    low = any ? std::min(low, value) : value;
    high = any ? std::max(high, value) : value;
    any = true;
  }
  if (!any) low = axis.log ? 0.1 : 0;
  range_ = axis.log ? log_range(low, high) : linear_range(low, high);
}

bool AxisScale::shows(double value) const {
  return std::isfinite(value) && (!axis_.log || value > 0);
}

double AxisScale::unit(double value) const {
  if (axis_.log) return std::log(value / range_.low) / std::log(range_.high / range_.low);
  return (value - range_.low) / (range_.high - range_.low);
}

std::vector<AxisScale::Tick> AxisScale::ticks(int most) const {
  std::vector<Tick> ticks;
  for (const ChartAxis::Name& name : axis_.names) ticks.push_back({unit(name.at), name.text});
  if (!axis_.names.empty()) return ticks;
  std::vector<double> values;
  // One value alone tells no scale: rather two that stand close.
  for (int more = 0; values.size() < 2 && more < 3; ++more) {
    values = axis_.log ? log_ticks(range_.low, range_.high, most + more)
                       : linear_ticks(range_.low, range_.high, most + more);
  }
  return values.size() < 2 ? ends() : told(values);
}

std::vector<AxisScale::Tick> AxisScale::ends() const {
  return told(std::array{range_.low, axis_.shares ? std::min(range_.high, 1.0) : range_.high});
}

std::vector<AxisScale::Tick> AxisScale::told(std::span<const double> values) const {
  std::vector<Tick> ticks;
  const std::vector<std::string> words = tick_words(values);
  for (size_t i = 0; i < values.size(); ++i) {
    ticks.push_back(
        {std::clamp(unit(values[i]), 0.0, 1.0), axis_.shares ? share_words(values[i]) : words[i]});
  }
  return ticks;
}

}  // namespace attnscope
