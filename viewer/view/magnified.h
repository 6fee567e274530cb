#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <optional>
#include <vector>

#include "viewer/view/maps/tile_source.h"
#include "viewer/view/view_state.h"

namespace attnscope {

/// Entries along a side of what the magnifier shows.
inline constexpr int64_t kMagnified = 11;

/// The entries around one of the map, whatever level the map is seen on. A value.
struct Magnified {
  int64_t row = 0, col = 0;  ///< places of the middle
  bool of_other = false;     ///< of side B, right of a split line
  /// [kMagnified, kMagnified]: as MapTile has them for the view's pool; nothing beyond the map, and
  /// where nothing is there yet.
  std::array<std::optional<float>, kMagnified * kMagnified> values;
  std::bitset<kMagnified* kMagnified> coarse = {};  ///< of `values`, those of a coarser level
  int coarsest = 0;                                 ///< the level of the coarsest
  bool complete = false;                            ///< something stands everywhere
  bool exact = false;                               ///< all of it

  int64_t first_row() const { return row - kMagnified / 2; }
  int64_t first_col() const { return col - kMagnified / 2; }
  std::optional<float> value(int64_t down, int64_t across) const {
    return values[static_cast<size_t>(down * kMagnified + across)];
  }
  /// The entry's own number; nothing where a coarser level stands in for it.
  std::optional<float> number(int64_t down, int64_t across) const {
    const auto cell = static_cast<size_t>(down * kMagnified + across);
    return coarse[cell] ? std::nullopt : values[cell];
  }
};

/// The tiles of single entries that the entries around a place lie in: one to four.
std::vector<TileId> magnified_tiles(const ViewState& state, const MapGeometry& geometry,
                                    int64_t row, int64_t col);
/// The entries as far as `tiles` has them.
Magnified magnified(const ViewState& state, const MapGeometry& geometry, const TileSource& tiles,
                    int64_t row, int64_t col);

}  // namespace attnscope
