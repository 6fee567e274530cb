#include "tests/viewer/remote/web/front_server.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/base/error.h"
#include "viewer/remote/message_line.h"
#include "viewer/remote/tile_server.h"

namespace attnscope::test {
namespace {

std::span<const unsigned char> bytes_of(std::string_view text) {
  return {reinterpret_cast<const unsigned char*>(text.data()), text.size()};
}

}  // namespace

std::span<const WebAsset> small_page() {
  static const std::string large(size_t{3} << 20, 'w');
  static const std::vector<WebAsset> files = {
      {"/", "text/html; charset=utf-8", bytes_of("the page")},
      {"/window.js", "text/javascript; charset=utf-8", bytes_of("the script")},
      {"/window.wasm", "application/wasm", bytes_of(large)}};
  return files;
}

const std::vector<FrontSetting>& front_settings() {
  static const std::vector<FrontSetting> all = {
      {"no options"},
      {"--allow-host, and a proxy that keeps Host",
       {{"hub.example.org", "[fd00::5]:8443"}, "/"},
       "hub.example.org",
       "https://hub.example.org"},
      {"--allow-host, and a proxy that writes Host anew",
       {{"hub.example.org:8443"}, "/"},
       "",
       "https://Hub.Example.org:8443"},
      {"--base-path", {{}, "/user/me/proxy/8765/"}, "", "", "/user/me/proxy/8765"},
      {"--base-path, and a proxy that takes it away", {{}, "/user/me/"}},
      {"all of them", {{"10.0.0.5"}, "/p/"}, "10.0.0.5:8765", "", "/p", "0.0.0.0"},
  };
  return all;
}

FrontServer::FrontServer(TileSource& tiles, RemoteHello hello, const WebLimits& limits,
                         const FrontSetting& setting)
    : tiles_(tiles),
      hello_(std::move(hello)),
      rules_(setting.rules),
      doors_(setting.bind.empty() ? WebDoors::on_loopback(0)
                                  : WebDoors::on_address(setting.bind, 0)),
      limits_(limits) {
  // The bell is rung all the time, as the harness takes its source's wakes for itself.
  ticker_ = std::jthread([this](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      bell_.ring();
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  });
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

void FrontServer::stop() {
  thread_.request_stop();
  bell_.ring();
  if (thread_.joinable()) thread_.join();
}

std::vector<std::string> FrontServer::farewells() const {
  const std::lock_guard lock(mutex_);
  return farewells_;
}

void FrontServer::count(size_t connections) {
  connections_ = connections;
  most_connections_ = std::max<size_t>(most_connections_, connections);
}

void FrontServer::run(const std::stop_token& stop) {
  WebFront front(doors_.descriptors(), small_page(), token_, rules_, limits_);
  while (!stop.stop_requested()) {
    front.wait(0.05, bell_.descriptor());
    bell_.quiet();
    count(front.connections());
    const auto window = front.take_window();
    if (!window) continue;
    try {
      TileServer server(tiles_, hello_, {});
      serve_messages(server, *window, bell_, stop, [&] { count(front.connections()); });
    } catch (const Error& e) {
      window->refuse(e.what());
    }
    tiles_.want({});
    const std::lock_guard lock(mutex_);
    farewells_.push_back(window->ended());
  }
}

}  // namespace attnscope::test
