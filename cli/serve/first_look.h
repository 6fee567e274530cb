#pragma once

#include "viewer/remote/messages.h"
#include "viewer/view/maps/tile_source.h"

namespace attnscope {

/// Has the first picture computed while nobody looks yet: the whole map of the first head, from the
/// few rows that a first picture needs. Wishes for nothing more once that is there, or cannot be.
/// Borrows the tiles. Not thread-safe.
class FirstLook {
 public:
  FirstLook(TileSource& tiles, const RemoteHello& hello);
  /// Something new may be found in the tiles.
  void look();
  /// Somebody else says now what is wanted.
  void leave() { waiting_ = false; }
  bool waiting() const { return waiting_; }

 private:
  TileSource& tiles_;
  Wishes wishes_;
  bool waiting_ = false;
};

}  // namespace attnscope
