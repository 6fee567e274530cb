#include "cli/serve/tiles_options.h"

#include <utility>

#include "cli/common/cache_option.h"

namespace attnscope {

TileService::Settings TilesOptions::of_captures(const Capture& capture,
                                                const Capture* second) const {
  TileService::Settings settings;
  settings.memory = memory_beside(capture, run).bytes;
  settings.threads = run.threads;
  settings.cache_folders = cache_folders(cache, capture);
  if (second != nullptr) {
    settings.memory -= counted_bytes(*second);
    settings.other_cache_folders = cache_folders(cache, *second);
  }
  return settings;
}

TileService::Settings TilesOptions::of_exports(const TileBackend& backend) const {
  TileService::Settings settings;
  settings.memory = memory_limit(run);
  settings.threads = run.threads > 0 ? run.threads : backend.workers();
  return settings;
}

std::unique_ptr<QuickCheck> TilesOptions::quick_check(const Capture& capture,
                                                      const TileBackend& backend,
                                                      std::function<void()> wake) const {
  // Beside the tiles that are kept: for a moment, a head.
  return std::make_unique<QuickCheck>(capture, backend, memory_beside(capture, run).bytes / 8,
                                      std::move(wake));
}

}  // namespace attnscope
