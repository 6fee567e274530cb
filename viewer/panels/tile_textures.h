#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "viewer/gl/texture_pool.h"
#include "viewer/state/tile_source.h"

namespace attnscope {

/// The number that MapPainter is given for a value: its base 2 logarithm for weights; +inf for NaN,
/// which is hatched.
float texel_number(float value, bool log2);

/// The tiles that are on the GPU: the least recently drawn one gives way to a new one. Only on the
/// context's thread.
class TileTextures {
 public:
  explicit TileTextures(int64_t bytes) : pool_(bytes) {}

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

  gl::TexturePool pool_;
  std::list<Entry> order_;  ///< the most recently used first
  std::map<TileId, std::list<Entry>::iterator> entries_;
  std::vector<uint16_t> scratch_;
  uint64_t round_ = 0;
};

}  // namespace attnscope
