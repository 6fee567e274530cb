#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "core/stream/tile_backend.h"

namespace attnscope {

/// The texels of one tile of a map in a device's memory, as a window's textures hold them: [rows,
/// cols] pairs of half floats, the largest entry and the mean of each texel; of weights their base
/// 2 logarithms. A copy of what the host has: the device may drop it when its memory is short. Must
/// not outlive the backend.
class DeviceTexels {
 public:
  virtual ~DeviceTexels() = default;
  /// Gives the memory back. Thread-safe.
  virtual void release() = 0;
};

/// Which blocks of the map are pooled: squares of 2^level entries, the first at the first of the
/// rows and at keys.begin, which is a multiple of 2^level. keys.end is one too, or the last key's.
struct TexelRequest {
  Quantity quantity = Quantity::weights;
  int level = 0;
  IndexRange keys;
};

/// Where texels go: texel (r, c) to element r·row_stride + c. Borrowed.
struct TexelTarget {
  float* max = nullptr;
  float* mean = nullptr;
  int64_t row_stride = 0;
  /// Null, or what takes the texels too, from its row `device_row` and its column 0 on.
  DeviceTexels* device = nullptr;
  int64_t device_row = 0;
};

/// A bound head that pools its entries where it computes them. Thread-safe, as BoundHead is.
class TexelPooler {
 public:
  virtual ~TexelPooler() = default;

  /// The highest level that it pools.
  virtual int most_level() const = 0;

  /// The largest entry and the mean of each block of the rows; of blocks at the map's edges, of
  /// what there is of them. Masked entries count as weight 0; masked logits are left out of means,
  /// and a block of nothing else is −inf. Norms are as for BoundHead::emit. The largest entries are
  /// those of emit(), but for the last bits where a device multiplies in another way for it; means
  /// are rounded once or twice more, in an order that depends on nothing but the block. The queries
  /// are rows that follow one another. False: the device's memory does not suffice, and nothing was
  /// computed.
  virtual bool pool(const QueryBlock& queries, std::span<const RowNorm> norms,
                    const TexelRequest& request, const TexelTarget& target) const = 0;

  /// Memory for a tile's texels, undefined at first; null where nobody is to show them
  /// (TileBackend::link_textures) or there is none to spare.
  virtual std::shared_ptr<DeviceTexels> make_texels(int64_t rows, int64_t cols) const = 0;
};

/// The textures of a window as one device sees them. All members are for the thread whose OpenGL
/// context it was made with, which must be current. While there is one, tiles keep their texels on
/// that device. Must not outlive the backend, nor its textures.
class TextureLink {
 public:
  virtual ~TextureLink() = default;

  /// Copies texels into the upper left corner of a layer of a texture array of pairs of half floats
  /// (its OpenGL name), in order with what OpenGL does before and after, and releases them. False:
  /// they are on another device, or not there any more. Throws Error(unavailable) where device and
  /// OpenGL do not work together; they will not on the next call either.
  virtual bool copy(DeviceTexels& texels, unsigned texture, int layer) = 0;
};

}  // namespace attnscope
