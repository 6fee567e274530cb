#pragma once

#include <span>
#include <string>
#include <vector>

#include "io/pictures/chart/chart.h"

namespace attnscope {

/// A chart's axis: which values it reaches over, and what stands beside them. Immutable; borrows
/// the axis.
class AxisScale {
 public:
  struct Tick {
    double unit = 0;  ///< 0 … 1, from the axis's beginning
    std::string label;
  };

  /// Over `values`, of which those count that the axis can show: finite ones, on a log axis above
  /// 0.
  AxisScale(const ChartAxis& axis, std::span<const double> values);

  bool shows(double value) const;
  /// 0 at the low end, 1 at the high end.
  double unit(double value) const;
  const ValueRange& range() const { return range_; }
  /// Round values, about `most` of them, or the ends where there are no two; all names where there
  /// are some.
  std::vector<Tick> ticks(int most) const;
  /// The two ends of the numbers, as they are.
  std::vector<Tick> ends() const;

 private:
  std::vector<Tick> told(std::span<const double> values) const;

  const ChartAxis& axis_;
  ValueRange range_;
};

}  // namespace attnscope
