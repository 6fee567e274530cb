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
#include "viewer/remote/web/web_rules.h"
#include "viewer/remote/web/web_token.h"
#include "viewer/view/maps/tile_source.h"

namespace attnscope::test {

/// A page of three files, whose bytes are text rather than gzip: nothing here unpacks them.
std::span<const WebAsset> small_page();

/// Options of a server, and how a request comes to it that has every right to: straight or by a
/// proxy.
struct FrontSetting {
  std::string name;
  WebRules rules = {};
  std::string host = {};    ///< the field Host; empty: 127.0.0.1 and the port
  std::string origin = {};  ///< the field Origin; empty: http:// and the host
  std::string prefix = {};  ///< in front of each path
  std::string bind = {};    ///< the address; empty: loopback
};
/// With every option of `attnscope serve` that changes who is let in, and the first without any.
const std::vector<FrontSetting>& front_settings();

/// A front on a thread of its own, which serves a source to whoever comes.
class FrontServer {
 public:
  /// Borrows the source, which is the server's thread's until stop().
  FrontServer(TileSource& tiles, RemoteHello hello, const WebLimits& limits = {},
              const FrontSetting& setting = {});
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
  const WebRules rules_;
  const WebDoors doors_;
  const std::string token_ = new_web_token();
  const WebLimits limits_;
  const EventBell bell_;
  std::atomic<size_t> connections_ = 0, most_connections_ = 0;
  mutable std::mutex mutex_;
  std::vector<std::string> farewells_;
  std::jthread ticker_, thread_;
};

}  // namespace attnscope::test
