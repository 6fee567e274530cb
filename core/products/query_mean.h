#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/base/memory_budget.h"
#include "core/products/query_volumes.h"

namespace attnscope {

/// Which of a call's coordinates volumes are averaged over.
struct MeanAxes {
  bool heads = false, layers = false, steps = false;
  bool any() const { return heads || layers || steps; }
  /// "heads, layers"; "none".
  std::string text() const;
};
/// From what --mean was given: heads, layers, steps, or all for the three. Throws Error(usage)
/// otherwise.
MeanAxes parse_mean_axes(std::span<const std::string> names);
std::vector<std::string> mean_axis_names();

/// Averages the volumes that differ in nothing but these axes: volumes and values[i], the values of
/// all tokens of volume i, become fewer, in the order of each one's first member. A coordinate that
/// was averaged over is −1 and the label says of how many; token strings stay where all members
/// have the same, a query position likewise. Sums in double, in order. Working space comes from
/// `budget`.
void average_volumes(const MeanAxes& axes, QueryVolumes& volumes,
                     std::vector<std::vector<float>>& values, MemoryBudget& budget);

/// How many volumes average_volumes leaves.
size_t count_averages(const MeanAxes& axes, const QueryVolumes& volumes);

}  // namespace attnscope
