#include "viewer/view/maps/map_geometry.h"

#include <algorithm>
#include <cassert>

namespace attnscope {
namespace {

/// Texels of the finest level that is kept whole: 2048², 32 MiB of largest values and means.
constexpr double kMostBaseTexels = 2048.0 * 2048.0;

}  // namespace

MapGeometry MapGeometry::of(int64_t rows, int64_t cols) {
  assert(rows > 0 && cols > 0);
  MapGeometry geometry{rows, cols, 0, 0};
  while (std::max(geometry.texel_rows(geometry.top_level),
                  geometry.texel_cols(geometry.top_level)) > kTileSide) {
    ++geometry.top_level;
  }
  const auto texels = [&](int level) {
    return static_cast<double>(geometry.texel_rows(level)) *
           static_cast<double>(geometry.texel_cols(level));
  };
  while (geometry.base_level < geometry.top_level &&
         texels(geometry.base_level) > kMostBaseTexels) {
    ++geometry.base_level;
  }
  return geometry;
}

}  // namespace attnscope
