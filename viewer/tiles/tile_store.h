#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "core/base/memory_budget.h"
#include "viewer/view/map_tile.h"

namespace attnscope {

using LinePtr = std::shared_ptr<const MapLine>;
using TilePtr = std::shared_ptr<const MapTile>;

/// Finished tiles and lines, and when they were last asked for. Whole pyramids are kept with their
/// head. Not thread-safe.
class TileStore {
 public:
  /// Null where there is none. Asking counts as use.
  TilePtr find(const TileId& id);
  LinePtr find(const LineRequest& request);

  /// Whether there is one; does not count as use.
  bool holds(const TileId& id) const { return tiles_.contains(id); }
  bool holds(const LineRequest& request) const { return lines_.contains(request); }

  /// `memory` is what the tile was reserved with. Replaces an older one.
  void put(TilePtr tile, MemoryReservation memory);
  void put(LinePtr line, MemoryReservation memory);
  void erase(const TileId& id) { tiles_.erase(id); }

  /// A time stamp: how often anything was used so far.
  uint64_t tick() { return ++clock_; }

  using Pinned = std::function<bool(const TileId&)>;
  /// When what would be dropped first was last used; nothing is left: the largest number.
  uint64_t oldest(const Pinned& pinned) const;
  /// Drops that.
  void drop_oldest(const Pinned& pinned);
  int64_t bytes() const;

 private:
  template <typename T>
  struct Kept {
    std::shared_ptr<const T> value;
    MemoryReservation memory;
    uint64_t used = 0;
  };
  std::map<TileId, Kept<MapTile>>::const_iterator oldest_tile(const Pinned& pinned) const;
  std::map<LineRequest, Kept<MapLine>>::const_iterator oldest_line() const;

  uint64_t clock_ = 0;
  std::map<TileId, Kept<MapTile>> tiles_;
  std::map<LineRequest, Kept<MapLine>> lines_;
};

}  // namespace attnscope
