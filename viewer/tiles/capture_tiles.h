#pragma once

#include <functional>
#include <memory>

#include "core/stream/tile_backend.h"
#include "io/capture/capture.h"
#include "viewer/tiles/tile_service.h"

namespace attnscope {

/// The tiles of a capture that may grow, in calls and in pictures of its video.
class CaptureTiles : public TileService {
 public:
  /// Borrows the capture and the backend. Of the settings memory, threads and cache folders count;
  /// the others follow from the capture. `follow`: calls and pictures may be added.
  CaptureTiles(const Capture& capture, const TileBackend& backend, Settings settings, bool follow,
               std::function<void()> wake);

  /// Borrows it, too. Throws what TileService::add() throws.
  void add_capture(const Capture& more);

 private:
  struct Grown;
  CaptureTiles(const Capture& capture, const TileBackend& backend, Settings settings, bool follow,
               const std::shared_ptr<Grown>& grown, std::function<void()> wake);
  static Settings with_sources(Settings settings, const Capture& capture, bool follow,
                               const std::shared_ptr<Grown>& grown);

  const std::shared_ptr<Grown> grown_;
};

/// The tiles of two captures, those of the second behind those of the first. Borrows both, and the
/// backend. Of the settings memory, threads and both captures' cache folders count.
std::unique_ptr<TileService> tiles_of_two(const Capture& capture, const Capture& second,
                                          const TileBackend& backend,
                                          TileService::Settings settings,
                                          std::function<void()> wake);

}  // namespace attnscope
