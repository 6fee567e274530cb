#pragma once

#include <cstdint>

namespace attnscope {

/// Texels along a tile's side.
inline constexpr int64_t kTileSide = 256;

/// Sizes of a head's map and its pyramid. A value.
struct MapGeometry {
  int64_t rows = 0;    ///< queries
  int64_t cols = 0;    ///< keys
  int top_level = 0;   ///< the first level on which the whole map is one tile
  int base_level = 0;  ///< the finest level that is kept whole; finer tiles are computed one by one

  static MapGeometry of(int64_t rows, int64_t cols);
  int64_t texel_rows(int level) const { return (rows + (int64_t{1} << level) - 1) >> level; }
  int64_t texel_cols(int level) const { return (cols + (int64_t{1} << level) - 1) >> level; }
  int64_t tile_rows(int level) const { return (texel_rows(level) + kTileSide - 1) / kTileSide; }
  int64_t tile_cols(int level) const { return (texel_cols(level) + kTileSide - 1) / kTileSide; }
};

}  // namespace attnscope
