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

/// The averages of the volumes that differ in nothing but these axes, in the order of each one's
/// first member, without values; the volumes as they are where there is no axis. A coordinate that
/// is averaged over is −1 and the label says of how many; token strings stay where all members have
/// the same, a query position likewise; evicted is what is so of all members.
QueryVolumes averages_of(const MeanAxes& axes, QueryVolumes volumes);

/// Makes the volumes their averages_of(), and values[i], the values of all tokens of volume i, the
/// averages' means. There must be an axis. Sums in double, in order. Working space comes from
/// `budget`.
void average_volumes(const MeanAxes& axes, QueryVolumes& volumes,
                     std::vector<std::vector<float>>& values, MemoryBudget& budget);

}  // namespace attnscope
