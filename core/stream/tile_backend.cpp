#include "core/stream/tile_backend.h"

#include <cassert>
#include <cmath>
#include <limits>
#include <numbers>

#include "core/stream/device_texels.h"

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

std::unique_ptr<TextureLink> TileBackend::link_textures() const { return nullptr; }

}  // namespace attnscope
