#include "core/base/mass_range.h"

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

}  // namespace attnscope
