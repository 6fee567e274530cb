#include "core/stream/tile_backend.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <numbers>

namespace attnscope {

double RowNorm::lse() const {
  if (sum == 0) return -std::numeric_limits<double>::infinity();
  return std::log(sum) + static_cast<double>(exponent) * std::numbers::ln2;
}

RowNorm RowNorm::from_value(double value) {
  assert(value >= 0 && std::isfinite(value));
  if (value == 0) return {};
  int exponent = 0;
  // frexp's fraction is in [0.5, 1).
  const double fraction = std::frexp(value, &exponent);
  return {2 * fraction, exponent - 1};
}

RowNorm RowNorm::with_logit(double logit) const {
  if (logit == -std::numeric_limits<double>::infinity()) return *this;
  const double octaves = logit * std::numbers::log2e;
  const double whole = std::floor(octaves);
  const RowNorm added{std::exp2(octaves - whole), static_cast<int64_t>(whole)};
  if (sum == 0) return added;
  const RowNorm& larger = exponent >= added.exponent ? *this : added;
  const RowNorm& smaller = exponent >= added.exponent ? added : *this;
  const int64_t shift = std::max<int64_t>(smaller.exponent - larger.exponent, -2000);
  RowNorm both = from_value(larger.sum + std::ldexp(smaller.sum, static_cast<int>(shift)));
  both.exponent += larger.exponent;
  return both;
}

}  // namespace attnscope
