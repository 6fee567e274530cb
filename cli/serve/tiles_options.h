#pragma once

#include <functional>
#include <memory>
#include <string>

#include "cli/common/capture_options.h"
#include "core/stream/tile_backend.h"
#include "viewer/tiles/quick_check.h"
#include "viewer/tiles/tile_service.h"

namespace attnscope {

/// How the maps of what is opened are computed or read.
struct TilesOptions {
  RunOptions run;
  std::string cache;    ///< --cache
  bool follow = false;  ///< calls and pictures may be added

  /// Memory, threads and cache folders for the tiles of a capture, or of two in one account.
  TileService::Settings of_captures(const Capture& capture, const Capture* second = nullptr) const;
  /// For an export, or two, that as many threads read as a backend has.
  TileService::Settings of_exports(const TileBackend& backend) const;
  /// Compares a capture with its own outputs, beside its tiles. Borrows both.
  std::unique_ptr<QuickCheck> quick_check(const Capture& capture, const TileBackend& backend,
                                          std::function<void()> wake) const;
};

}  // namespace attnscope
