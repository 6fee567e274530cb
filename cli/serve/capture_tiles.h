#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cli/common/capture_options.h"
#include "core/stream/tile_backend.h"
#include "viewer/tiles/quick_check.h"
#include "viewer/tiles/texels/texel_reader.h"
#include "viewer/tiles/tile_service.h"

namespace attnscope {

/// How the maps of what is opened are computed or read.
struct TilesOptions {
  RunOptions run;
  std::string cache;    ///< --cache
  bool follow = false;  ///< calls and pictures may be added
};

/// The tiles of a capture that may grow, in calls and in pictures of its video.
class CaptureTiles : public TileService {
 public:
  /// Borrows the capture and the backend.
  CaptureTiles(const Capture& capture, const TileBackend& backend, const TilesOptions& options,
               std::function<void()> wake);

  /// Borrows it, too. Throws what TileService::add() throws.
  void add_capture(const Capture& more);

 private:
  struct Grown;
  CaptureTiles(const Capture& capture, const TileBackend& backend, const TilesOptions& options,
               const std::shared_ptr<Grown>& grown, std::function<void()> wake);
  static Settings settings(const Capture& capture, const TilesOptions& options,
                           const std::shared_ptr<Grown>& grown);

  const std::shared_ptr<Grown> grown_;
};

/// The tiles of two captures, those of the second behind those of the first. Borrows both, and the
/// backend.
std::unique_ptr<TileService> tiles_of_two(const Capture& capture, const Capture& second,
                                          const TileBackend& backend, const TilesOptions& options,
                                          std::function<void()> wake);
/// The tiles of an export, or of two. Borrows the backend.
std::unique_ptr<TileService> tiles_of_export(std::shared_ptr<const TexelReader> reader,
                                             const TileBackend& backend,
                                             const TilesOptions& options,
                                             std::function<void()> wake);
/// Compares a capture with its own outputs, beside its tiles. Borrows both.
std::unique_ptr<QuickCheck> quick_check_of(const Capture& capture, const TileBackend& backend,
                                           const TilesOptions& options, std::function<void()> wake);

}  // namespace attnscope
