#include "viewer/panels/tile_textures.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "core/dtype.h"

namespace attnscope {

float texel_number(float value, bool log2) {
  if (std::isnan(value)) return std::numeric_limits<float>::infinity();
  // +inf is taken, and float16 ends here.
  return std::min(log2 ? std::log2(value) : value, 65504.0f);
}

TileTextures::Drawn TileTextures::use(const TileId& id) {
  const auto at = entries_.at(id);
  order_.splice(order_.begin(), order_, at);
  return {at->slot, at->tile};
}

/// Where a tile is or will be; end where no room can be made.
std::list<TileTextures::Entry>::iterator TileTextures::place(const TileId& id) {
  if (const auto found = entries_.find(id); found != entries_.end()) {
    order_.splice(order_.begin(), order_, found->second);
    return found->second;
  }
  std::optional<gl::PoolSlot> slot = pool_.take();
  if (!slot) {
    if (order_.back().wanted == round_) return order_.end();
    slot = order_.back().slot;
    entries_.erase(order_.back().id);
    order_.pop_back();
  }
  order_.push_front({id, *slot, nullptr, round_});
  entries_.emplace(id, order_.begin());
  return order_.begin();
}

void TileTextures::fill(const Entry& entry) {
  const MapTile& tile = *entry.tile;
  const size_t texels = tile.max.size();
  scratch_.resize(texels * 2);
  const bool logs = tile.id.quantity == MapQuantity::weights;
  for (size_t i = 0; i < texels; ++i) {
    scratch_[2 * i] = to_f16(texel_number(tile.max[i], logs)).bits;
    scratch_[2 * i + 1] = to_f16(texel_number(tile.mean[i], logs)).bits;
  }
  pool_.upload(entry.slot, static_cast<int>(tile.rows), static_cast<int>(tile.cols), scratch_);
}

bool TileTextures::upload(const TileSource& source, std::span<const TileId> tiles,
                          double milliseconds) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point until =
      Clock::now() + std::chrono::microseconds(static_cast<int64_t>(milliseconds * 1000));
  ++round_;
  for (const TileId& id : tiles) {
    if (const auto found = entries_.find(id); found != entries_.end()) {
      found->second->wanted = round_;
    }
  }
  bool worked = false;
  for (const TileId& id : tiles) {
    std::shared_ptr<const MapTile> tile = source.find(id);
    if (!tile) continue;
    const auto known = entries_.find(id);
    if (known != entries_.end() && known->second->tile == tile) continue;
    if (worked && Clock::now() >= until) return true;
    const auto at = place(id);
    if (at == order_.end()) return false;
    at->tile = std::move(tile);
    fill(*at);
    worked = true;
  }
  return false;
}

void TileTextures::clear() {
  for (const Entry& entry : order_) pool_.give_back(entry.slot);
  order_.clear();
  entries_.clear();
}

}  // namespace attnscope
