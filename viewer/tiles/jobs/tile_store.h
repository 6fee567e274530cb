#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>

#include "core/base/memory_budget.h"
#include "viewer/view/maps/answers.h"

namespace attnscope {

using LinePtr = std::shared_ptr<const MapLine>;
using TilePtr = std::shared_ptr<const MapTile>;
using EntryPtr = std::shared_ptr<const ProbedEntry>;
using MassPtr = std::shared_ptr<const KeyMasses>;

/// Finished tiles, lines and entries, and when they were last asked for. Whole pyramids are kept
/// with their head. Not thread-safe.
class TileStore {
 public:
  /// Null where there is none. Asking counts as use.
  TilePtr find(const TileId& id);
  LinePtr find(const LineRequest& request);
  EntryPtr find(const ProbeRequest& request);
  MassPtr find(const MassRequest& request);

  /// True where there is one; does not count as use.
  bool holds(const TileId& id) const { return tiles_.contains(id); }
  bool holds(const LineRequest& request) const { return lines_.contains(request); }
  bool holds(const ProbeRequest& request) const { return probes_.contains(request); }
  bool holds(const MassRequest& request) const { return masses_.contains(request); }

  /// `memory` is what the tile was reserved with. Replaces an older one.
  void put(TilePtr tile, MemoryReservation memory);
  void put(LinePtr line, MemoryReservation memory);
  /// Some are kept, for no memory worth counting.
  void put(const ProbeRequest& request, const ProbedEntry& entry);
  void put(MassPtr masses, MemoryReservation memory);
  void erase(const TileId& id) { tiles_.erase(id); }

  /// A time stamp: how often anything was used so far.
  uint64_t tick() { return ++clock_; }

  /// The tiles and lines that are looked at, and stay.
  struct Pinned {
    std::set<TileId> tiles;
    std::set<LineRequest> lines;
  };
  /// When what would be dropped first was last used; nothing is left: the largest number.
  uint64_t oldest(const Pinned& pinned) const;
  /// Drops that.
  void drop_oldest(const Pinned& pinned);
  int64_t bytes() const;

 private:
  template <typename T>
  struct Kept {
    T value;
    MemoryReservation memory;
    uint64_t used = 0;
  };
  template <typename Key, typename T>
  using KeptMap = std::map<Key, Kept<T>>;
  template <typename Key, typename T>
  static auto oldest_of(const KeptMap<Key, T>& kept, const std::set<Key>& pinned = {});

  uint64_t clock_ = 0;
  KeptMap<TileId, TilePtr> tiles_;
  KeptMap<LineRequest, LinePtr> lines_;
  KeptMap<ProbeRequest, EntryPtr> probes_;
  KeptMap<MassRequest, MassPtr> masses_;
};

}  // namespace attnscope
