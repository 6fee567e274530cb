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

FrontServer::FrontServer(TileSource& tiles, RemoteHello hello, const WebLimits& limits)
    : tiles_(tiles), hello_(std::move(hello)), limits_(limits) {
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
  WebFront front(doors_.descriptors(), small_page(), token_, limits_);
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
