#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/stream/device_texels.h"
#include "viewer/gl/texture_pool.h"
#include "viewer/textures/upload_choice.h"
#include "viewer/view/maps/tile_source.h"

namespace attnscope {

/// The number that MapPainter is given for a value: its base 2 logarithm for weights,
/// gl::kZeroTexel for one of 0; +inf for NaN, which is hatched; −inf for −inf, which is masked.
float texel_number(float value, bool log2);
/// The factor that differences of these numbers have in a texture of half floats: those of weights
/// are at most 1, and mostly too small for half floats without it.
float difference_texel_factor(Quantity quantity, Difference how);

/// The tiles that are on the GPU: the least recently drawn one gives way to a new one. Only on the
/// context's thread.
class TileTextures {
 public:
  explicit TileTextures(int64_t bytes) : pool_(bytes) {}

  /// From now on tiles that are on a device may come from there: both ways are measured, and the
  /// faster one is kept. What the device brings first is read back and compared with what the host
  /// has. Where the device fails, `tell` gets a line, and tiles come from the host for good.
  void set_link(std::unique_ptr<TextureLink> link, std::function<void(const std::string&)> tell);
  /// "interop", "staging", or "measuring" while both are tried.
  std::string_view upload_way() const;

  bool has(const TileId& id) const { return entries_.contains(id); }
  /// The tile as it was uploaded, and where; marks it as drawn now. It must be there.
  struct Drawn {
    gl::PoolSlot slot;
    std::shared_ptr<const MapTile> tile;
  };
  Drawn use(const TileId& id);
  /// Uploads what the source has of `tiles`, in this order, new ones and those that became better
  /// since, for at most about `milliseconds` (but one at least). Tiles of this list are not given
  /// up for later ones of it. Whether something is left to upload.
  bool upload(const TileSource& source, std::span<const TileId> tiles, double milliseconds);
  /// Another capture: everything is free again.
  void clear();

  const gl::TexturePool& pool() const { return pool_; }

 private:
  struct Entry {
    TileId id;
    gl::PoolSlot slot;
    std::shared_ptr<const MapTile> tile;
    uint64_t wanted = 0;  ///< the last upload() whose list had it
  };
  std::list<Entry>::iterator place(const TileId& id);
  void fill(const Entry& entry);
  void stage(const Entry& entry);
  void convert(const MapTile& tile);
  bool link(const Entry& entry);
  bool shows(const Entry& entry);
  void drop_link(const std::string& reason);

  gl::TexturePool pool_;
  std::unique_ptr<TextureLink> link_;  ///< goes before the textures do
  std::function<void(const std::string&)> tell_;
  UploadChoice choice_;
  bool link_checked_ = false;
  std::list<Entry> order_;  ///< the most recently used first
  std::map<TileId, std::list<Entry>::iterator> entries_;
  std::vector<uint16_t> scratch_;
  uint64_t round_ = 0;
};

}  // namespace attnscope
