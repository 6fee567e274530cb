#include "core/base/mass_range.h"

#include <algorithm>

namespace attnscope {

double mass_keeping_end(double quantile, std::span<const ValueMass> beyond, double total) {
  double mass = 0;
  for (size_t i = beyond.size(); i > 0; --i) {
    mass += beyond[i - 1].mass;
    if (mass > kMostMassBeyond * total) return beyond[i - 1].value;
  }
  return quantile;
}

double mass_covering_end(size_t count, const std::function<ValueMass(size_t)>& at, double total) {
  double mass = 0;
  for (size_t i = 0; i < count; ++i) {
    const ValueMass each = at(i);
    mass += each.mass;
    if (mass > kMostMassBelow * total || i + 1 == count) return each.value;
  }
  return 0;
}

MassEnds mass_ends(std::span<const ValueMass> cells) {
  constexpr double kMostCellsBeyond = 0.001;
  double total = 0, count = 0;
  for (const ValueMass& each : cells) {
    total += each.mass;
    count += each.count;
  }
  size_t behind = cells.size();
  for (double beyond = 0; behind > 1; --behind) {
    beyond += cells[behind - 1].count;
    if (beyond > kMostCellsBeyond * count) break;
  }
  const double high = mass_keeping_end(cells[behind - 1].value, cells.subspan(behind), total);
  const auto at = [&](size_t i) { return cells[i]; };
  return {std::min(mass_covering_end(cells.size(), at, total), high), high};
}

}  // namespace attnscope
