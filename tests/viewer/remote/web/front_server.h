#pragma once

#include <atomic>
#include <mutex>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "viewer/remote/byte_line.h"
#include "viewer/remote/web/web_doors.h"
#include "viewer/remote/web/web_front.h"
#include "viewer/remote/web/web_token.h"
#include "viewer/view/maps/tile_source.h"

namespace attnscope::test {

/// A page of three files, whose bytes are text rather than gzip: nothing here unpacks them.
std::span<const WebAsset> small_page();

/// A front on a thread of its own, which serves a source to whoever comes.
class FrontServer {
 public:
  /// Borrows the source, which is the server's thread's until stop().
  FrontServer(TileSource& tiles, RemoteHello hello, const WebLimits& limits = {});
  ~FrontServer() { stop(); }
  /// Ends the server, as Ctrl-C does.
  void stop();

  int port() const { return doors_.port(); }
  const std::string& token() const { return token_; }
  size_t connections() const { return connections_; }
  size_t most_connections() const { return most_connections_; }
  /// Why windows have gone.
  std::vector<std::string> farewells() const;

 private:
  void run(const std::stop_token& stop);
  void count(size_t connections);

  TileSource& tiles_;
  const RemoteHello hello_;
  const WebDoors doors_ = WebDoors::on_loopback(0);
  const std::string token_ = new_web_token();
  const WebLimits limits_;
  const EventBell bell_;
  std::atomic<size_t> connections_ = 0, most_connections_ = 0;
  mutable std::mutex mutex_;
  std::vector<std::string> farewells_;
  std::jthread ticker_, thread_;
};

}  // namespace attnscope::test
