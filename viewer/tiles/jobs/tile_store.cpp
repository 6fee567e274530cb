#include "viewer/tiles/jobs/tile_store.h"

#include <algorithm>
#include <limits>

namespace attnscope {
namespace {

/// Lines that follow a mouse are not worth a cache of tiles.
constexpr size_t kMostLines = 64;
constexpr size_t kMostProbes = 64;
/// A few kB each.
constexpr size_t kMostMasses = 64;
constexpr uint64_t kNeverUsed = std::numeric_limits<uint64_t>::max();

}  // namespace

/// The end where all are pinned.
template <typename Key, typename T>
auto TileStore::oldest_of(const KeptMap<Key, T>& kept, const std::set<Key>& pinned) {
  auto oldest = kept.end();
  for (auto it = kept.begin(); it != kept.end(); ++it) {
    if (oldest != kept.end() && it->second.used >= oldest->second.used) continue;
    if (!pinned.contains(it->first)) oldest = it;
  }
  return oldest;
}

TilePtr TileStore::find(const TileId& id) {
  const auto found = tiles_.find(id);
  if (found == tiles_.end()) return nullptr;
  found->second.used = tick();
  return found->second.value;
}

LinePtr TileStore::find(const LineRequest& request) {
  const auto found = lines_.find(request);
  if (found == lines_.end()) return nullptr;
  found->second.used = tick();
  return found->second.value;
}

EntryPtr TileStore::find(const ProbeRequest& request) {
  const auto found = probes_.find(request);
  if (found == probes_.end()) return nullptr;
  found->second.used = tick();
  return found->second.value;
}

MassPtr TileStore::find(const MassRequest& request) {
  const auto found = masses_.find(request);
  if (found == masses_.end()) return nullptr;
  found->second.used = tick();
  return found->second.value;
}

void TileStore::put(TilePtr tile, MemoryReservation memory) {
  const TileId id = tile->id;
  tiles_.insert_or_assign(id, Kept<TilePtr>{std::move(tile), std::move(memory), tick()});
}

void TileStore::put(LinePtr line, MemoryReservation memory) {
  while (lines_.size() >= kMostLines) lines_.erase(oldest_of(lines_));
  const LineRequest request = line->request;
  lines_.insert_or_assign(request, Kept<LinePtr>{std::move(line), std::move(memory), tick()});
}

void TileStore::put(const ProbeRequest& request, const ProbedEntry& entry) {
  while (probes_.size() >= kMostProbes) probes_.erase(oldest_of(probes_));
  auto kept = std::make_shared<const ProbedEntry>(entry);
  probes_.insert_or_assign(request, Kept<EntryPtr>{std::move(kept), {}, tick()});
}

void TileStore::put(MassPtr masses, MemoryReservation memory) {
  while (masses_.size() >= kMostMasses) masses_.erase(oldest_of(masses_));
  const MassRequest request = masses->request;
  masses_.insert_or_assign(request, Kept<MassPtr>{std::move(masses), std::move(memory), tick()});
}

uint64_t TileStore::oldest(const Pinned& pinned) const {
  const auto tile = oldest_of(tiles_, pinned.tiles);
  const auto line = oldest_of(lines_, pinned.lines);
  return std::min(tile == tiles_.end() ? kNeverUsed : tile->second.used,
                  line == lines_.end() ? kNeverUsed : line->second.used);
}

void TileStore::drop_oldest(const Pinned& pinned) {
  const auto tile = oldest_of(tiles_, pinned.tiles);
  const auto line = oldest_of(lines_, pinned.lines);
  if (tile == tiles_.end() && line == lines_.end()) return;
  if (line == lines_.end() || (tile != tiles_.end() && tile->second.used < line->second.used)) {
    tiles_.erase(tile);
  } else {
    lines_.erase(line);
  }
}

int64_t TileStore::bytes() const {
  int64_t bytes = 0;
  for (const auto& [id, tile] : tiles_) bytes += tile.memory.bytes();
  for (const auto& [request, line] : lines_) bytes += line.memory.bytes();
  for (const auto& [request, masses] : masses_) bytes += masses.memory.bytes();
  return bytes;
}

}  // namespace attnscope
