#pragma once

#include <cstddef>
#include <functional>
#include <span>

namespace attnscope {

/// Where colours begin and end by themselves: where the mass is. One rule for pictures, the window
/// and pages.

/// A value above 0 (of a cell, a bin of a histogram, a code), and the mass of all that has it.
struct ValueMass {
  double value = 0;
  double mass = 0;
  double count = 1;  ///< of the cells
};

/// The share of the mass that may lie in values beyond the high end. A quantile alone cuts off the
/// few cells that hold most of a peaked row.
inline constexpr double kMostMassBeyond = 0.1;
/// The share of the mass that lies in values below the low end of a log scale. All that is less
/// spans as many decades as softmax has, and has nearly nothing.
inline constexpr double kMostMassBelow = 0.001;

/// The high end: the quantile, or the least of the values beyond it that leaves no more than
/// kMostMassBeyond of `total` beyond itself. `beyond` are the values above the quantile, ascending.
double mass_keeping_end(double quantile, std::span<const ValueMass> beyond, double total);

/// The low end of a log scale: the largest of `count` values, ascending, below which no more than
/// kMostMassBelow of `total` lies; 0 where there are none.
double mass_covering_end(size_t count, const std::function<ValueMass(size_t)>& at, double total);

/// Both ends on a log scale, low ≤ high, for cells whose mass is not their value (blocks by their
/// largest weight): from mass_covering_end() to mass_keeping_end() of the value that a thousandth
/// of the cells lies beyond. `cells`, ascending, at least one.
struct MassEnds {
  double low = 0, high = 0;
};
MassEnds mass_ends(std::span<const ValueMass> cells);

}  // namespace attnscope
