#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cli/common/capture_options.h"
#include "cli/serve/tiles_options.h"
#include "cli/serve/web_options.h"
#include "core/stream/tile_backend.h"
#include "viewer/remote/tile_server.h"
#include "viewer/tiles/capture_follower.h"
#include "viewer/tiles/capture_tiles.h"
#include "viewer/tiles/opened_maps.h"

namespace attnscope {

/// The values of the options of `attnscope serve`.
struct ServeRequest {
  CaptureOptions capture;
  RunOptions run;
  std::string second, cache;
  bool stdio = false;
  WebOptions web;
  bool follow = false;
  bool quiet = false;
};

/// The maps that are served, with all that brings them. Not thread-safe.
class Served {
 public:
  /// Borrows the backend. `wake` is called from any thread when there may be something new.
  Served(const ServeRequest& request, OpenedMaps maps, const TileBackend& backend,
         const ReadControl& control, std::function<void()> wake);

  TileSource& tiles() { return *tiles_; }
  /// The calls, pictures and warnings of now, as a client is greeted with them.
  const RemoteHello& hello() const { return hello_; }
  TileServer::Watched watched() const;
  /// The additions to a growing capture since the last call of this.
  std::vector<RemoteAdded> take_added();
  /// Why nothing more comes to it, or what could not be read of it, one line; may be empty.
  const std::string& problem() const { return problem_; }

 private:
  RemoteHello first_hello(const ServeRequest& request) const;
  RemoteAdded add(const std::shared_ptr<const Capture>& more);
  std::string changed_file() const;

  OpenedMaps maps_;
  std::vector<std::shared_ptr<const Capture>> added_;
  const Capture* pictured_ = nullptr;
  std::unique_ptr<TileSource> tiles_;
  CaptureTiles* growing_ = nullptr;
  std::unique_ptr<QuickCheck> check_;
  std::unique_ptr<CaptureFollower> follower_;
  RemoteHello hello_;
  std::string problem_;
};

}  // namespace attnscope
