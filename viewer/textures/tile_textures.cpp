#include "viewer/textures/tile_textures.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "core/base/dtype.h"
#include "core/base/error.h"
#include "viewer/gl/map_painter.h"

namespace attnscope {
namespace {

using Clock = std::chrono::steady_clock;

/// Half floats that are one number, but for the last digit of how it was computed.
bool are_near(uint16_t a, uint16_t b) {
  const float x = to_float(f16{a});
  const float y = to_float(f16{b});
  if (x == y) return true;
  return std::fabs(x - y) <= 0x1p-9f * std::max(1.0f, std::fabs(y));
}

}  // namespace

float texel_number(float value, bool log2) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  if (std::isnan(value)) return kInf;
  if (value == -kInf) return -kInf;
  // Both infinities are taken, and float16 ends here.
  return std::clamp(log2 ? std::log2(value) : value, gl::kZeroTexel, -gl::kZeroTexel);
}

float difference_texel_factor(Quantity quantity, Difference how) {
  return quantity == Quantity::weights && how != Difference::log_ratio ? 0x1p15f : 1.0f;
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

void TileTextures::set_link(std::unique_ptr<TextureLink> link,
                            std::function<void(const std::string&)> tell) {
  link_ = std::move(link);
  tell_ = std::move(tell);
  choice_ = {};
  link_checked_ = false;
}

std::string_view TileTextures::upload_way() const {
  if (!link_) return "staging";
  return choice_.decided() ? "interop" : "measuring";
}

void TileTextures::drop_link(const std::string& reason) {
  link_ = nullptr;
  if (tell_) tell_("tiles come to the window through the host: " + reason);
}

/// Either way; a device's copy is of no use any more then.
void TileTextures::fill(const Entry& entry) {
  DeviceTexels* const on_device = entry.tile->device.get();
  if (on_device == nullptr || !link_) {
    stage(entry);
    return;
  }
  const UploadWay way = choice_.next();
  const Clock::time_point start = Clock::now();
  if (way == UploadWay::staging || !link(entry)) {
    stage(entry);
    on_device->release();
    if (way == UploadWay::interop || !link_) return;
  }
  const std::chrono::duration<double> spent = Clock::now() - start;
  choice_.measured(way, spent.count() / static_cast<double>(entry.tile->max.size()));
  if (way == UploadWay::interop && !link_checked_ && !shows(entry)) {
    drop_link("what the device has written is not what was computed");
    stage(entry);
  }
  // Tiles are not kept on the device for nothing.
  if (choice_.decided() && choice_.next() == UploadWay::staging) link_ = nullptr;
}

/// True where the device has brought the tile to its texture; else the host has to stage it.
bool TileTextures::link(const Entry& entry) {
  try {
    if (!link_->copy(*entry.tile->device, pool_.name(entry.slot), entry.slot.layer)) return false;
    pool_.count_upload();
    return true;
  } catch (const Error& e) {
    drop_link(e.what());
    return false;
  }
}

/// True where the texture holds the tile's numbers. Called once: reading waits for the GPU.
bool TileTextures::shows(const Entry& entry) {
  link_checked_ = true;
  const std::vector<uint16_t> seen = pool_.read(entry.slot, static_cast<int>(entry.tile->rows),
                                                static_cast<int>(entry.tile->cols));
  convert(*entry.tile);
  return std::equal(seen.begin(), seen.end(), scratch_.begin(), scratch_.end(), are_near);
}

void TileTextures::stage(const Entry& entry) {
  const MapTile& tile = *entry.tile;
  convert(tile);
  pool_.upload(entry.slot, static_cast<int>(tile.rows), static_cast<int>(tile.cols), scratch_);
}

/// The tile as a texture holds it, in scratch_.
void TileTextures::convert(const MapTile& tile) {
  const size_t texels = tile.max.size();
  scratch_.resize(texels * 2);
  const std::optional<Against>& against = tile.id.against;
  const bool logs = tile.id.quantity == Quantity::weights && !against;
  const float factor = against ? difference_texel_factor(tile.id.quantity, against->how) : 1;
  for (size_t i = 0; i < texels; ++i) {
    scratch_[2 * i] = to_f16(texel_number(tile.max[i] * factor, logs)).bits;
    scratch_[2 * i + 1] = to_f16(texel_number(tile.mean[i] * factor, logs)).bits;
  }
}

bool TileTextures::upload(const TileSource& source, std::span<const TileId> tiles,
                          double milliseconds) {
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
    std::shared_ptr<const MapTile> tile = find(source, id);
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
