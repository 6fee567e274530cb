// Windows in browsers: what comes by a WebSocket, who looks, and how it ends.
#include <chrono>
#include <cstring>
#include <thread>

#include "core/base/version.h"
#include "tests/support/catch.h"
#include "tests/support/raw_client.h"
#include "tests/support/waiting.h"
#include "tests/viewer/remote/remote_pair.h"
#include "tests/viewer/remote/web/browser_client.h"
#include "tests/viewer/remote/web/front_server.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

/// A browser's side of the window: its tile source, and the client that brings it messages.
class Window {
 public:
  Window(const FrontServer& server, bool deflates)
      : client_(server.port(), server.token(), deflates) {
    client_.send({MessageType::greeted, to_wire(kProtocol)});
    const auto hello = client_.receive();
    REQUIRE(hello);
    REQUIRE(hello->type == MessageType::hello);
    source_ = std::make_unique<RemoteTileSource>("there", read_hello(hello->body),
                                                 int64_t{64} << 20, [] {});
  }
  RemoteTileSource& source() { return *source_; }
  BrowserClient& client() { return client_; }
  /// Until `ready` holds; false after a minute, or where the connection ends.
  bool wait(const std::function<bool()>& ready) {
    bool lost = false;
    const bool came = becomes([&] {
      for (const Message& message : source_->outgoing()) client_.send(message);
      if (const auto message = client_.receive_within(0.05)) source_->take(*message);
      lost = !client_.why().empty();
      return lost || ready();
    });
    return came && !lost;
  }

 private:
  BrowserClient client_;
  std::unique_ptr<RemoteTileSource> source_;
};

/// The bytes of the tiles' values as floats, not packed.
size_t whole_bytes(const TileSource& source, const std::vector<TileId>& tiles) {
  size_t bytes = 0;
  for (const TileId& id : tiles) {
    const auto tile = find(source, id);
    bytes += (tile->max.size() + (id.level == 0 ? 0 : tile->mean.size())) * sizeof(float);
  }
  return bytes;
}

WishesByKind everything() {
  WishesByKind wishes;
  wishes.tiles = {{kHead, Quantity::weights, 2, 0, 0, {}},
                  {kHead, Quantity::weights, 0, 1, 2, {}},
                  {kHead, Quantity::logits, 0, 0, 0, {}}};
  wishes.exact = {kHead};
  wishes.line = LineRequest{kHead, Quantity::weights, false, {17}, false};
  wishes.probes = {{kHead, 599, 598}};
  return wishes;
}

}  // namespace

TEST_CASE("tiles, rows and entries come by a WebSocket bit for bit, deflated by it or not") {
  const bool deflates = GENERATE(true, false);
  CAPTURE(deflates);
  const Oracle oracle(video_case());
  ServiceHarness harness(oracle.problem());
  FrontServer server(harness.service(), hello_of(oracle.problem(), harness.service()));
  const WishesByKind wishes = everything();
  Window window(server, deflates);
  CHECK(window.client().greeting() ==
        "attnscope tiles " + std::to_string(kProtocol) + " " + std::string(version()));
  window.source().want(wishes);
  REQUIRE(window.wait([&] {
    for (const TileId& id : wishes.tiles) {
      const auto tile = find(window.source(), id);
      if (!tile || !tile->exact) return false;
    }
    return find(window.source(), *wishes.line) && find(window.source(), wishes.probes[0]) &&
           !window.source().status().busy;
  }));
  // Tiles are packed either way: by the WebSocket, or one by one.
  INFO("messages " << window.client().received_bytes() << ", wire "
                   << window.client().wire_bytes());
  if (deflates) CHECK(window.client().wire_bytes() < window.client().received_bytes() * 9 / 10);
  if (!deflates) CHECK(window.client().wire_bytes() < window.client().received_bytes() + 10000);
  const size_t expected = whole_bytes(window.source(), wishes.tiles);
  CHECK(window.client().wire_bytes() < expected * 9 / 10);
  server.stop();
  ServiceHarness local(oracle.problem());
  local.want(wishes);
  REQUIRE(local.wait_idle());
  for (const TileId& id : wishes.tiles) {
    const auto here = find(local.service(), id), there = find(window.source(), id);
    REQUIRE(here);
    CHECK(there->id == id);
    CHECK(here->rows == there->rows);
    CHECK(same_bits(here->max, there->max));
    CHECK(same_bits(here->mean, there->mean));
    CHECK(std::any_of(there->max.begin(), there->max.end(), [](float v) { return v != 0; }));
  }
  CHECK(same_bits(find(local.service(), *wishes.line)->values,
                  find(window.source(), *wishes.line)->values));
  CHECK(find(local.service(), wishes.probes[0])->weight ==
        find(window.source(), wishes.probes[0])->weight);
}

TEST_CASE("a second window takes the place of the first, which is told and can come back") {
  const Oracle oracle(video_case());
  ServiceHarness harness(oracle.problem());
  FrontServer server(harness.service(), hello_of(oracle.problem(), harness.service()));
  Window first(server, true);
  first.source().want(everything());
  REQUIRE(first.wait([&] {
    return find(first.source(), ProbeRequest{kHead, 599, 598}) != nullptr;
  }));
  Window second(server, true);
  CHECK_FALSE(first.wait([] { return false; }));
  CHECK(first.client().why() == "4409 another window has taken over");
  second.source().want(everything());
  CHECK(second.wait([&] {
    return find(second.source(), ProbeRequest{kHead, 599, 598}) != nullptr;
  }));
  Window again(server, true);
  CHECK_FALSE(second.wait([] { return false; }));
  again.client().close();
  REQUIRE(becomes([&] { return server.farewells().size() == 3; }));
  CHECK(server.farewells() == std::vector<std::string>{"another window has taken over",
                                                       "another window has taken over",
                                                       "it was closed"});
}

TEST_CASE("a window that vanishes leaves nothing to be computed, and another one finds all") {
  const Oracle oracle(video_case());
  ServiceHarness harness(oracle.problem());
  FrontServer server(harness.service(), hello_of(oracle.problem(), harness.service()));
  {
    // Without a word of farewell.
    Window gone(server, true);
    gone.source().want(everything());
    for (const Message& message : gone.source().outgoing()) gone.client().send(message);
  }
  REQUIRE(becomes([&] { return server.farewells().size() == 1; }));
  CHECK(becomes([&] { return !harness.service().status().busy; }));
  CHECK(becomes([&] { return server.connections() == 0; }));
  Window next(server, true);
  next.source().want(everything());
  CHECK(next.wait([&] { return find(next.source(), ProbeRequest{kHead, 599, 598}) != nullptr; }));
}

TEST_CASE("a window that never reads is given no more than may be under way, and others come in") {
  const Oracle oracle(video_case());
  ServiceHarness harness(oracle.problem());
  FrontServer server(harness.service(), hello_of(oracle.problem(), harness.service()));
  RawClient stubborn(server.port());
  stubborn.send(websocket_request(server.port()));
  REQUIRE(status_of(stubborn.receive_answer()) == 101);
  stubborn.send(websocket_frame(kText, server.token()));
  stubborn.send(websocket_frame(kBinary, to_frame({MessageType::greeted, to_wire(kProtocol)})));
  // As many answers as it likes, none of which it takes.
  const std::string ping =
      websocket_frame(kBinary, to_frame({MessageType::ping, std::string(64, 'p')}));
  for (int i = 0; i < 20000; ++i) stubborn.send(ping);
  Window next(server, true);
  next.source().want(everything());
  CHECK(next.wait([&] { return find(next.source(), ProbeRequest{kHead, 599, 598}) != nullptr; }));
}

TEST_CASE("windows are told that the server ends") {
  const Oracle oracle(video_case());
  ServiceHarness harness(oracle.problem());
  FrontServer server(harness.service(), hello_of(oracle.problem(), harness.service()));
  Window window(server, true);
  std::thread end([&] { server.stop(); });
  CHECK_FALSE(window.wait([] { return false; }));
  end.join();
  CHECK(window.client().why() == "1001 the server has ended");
}

TEST_CASE("the server does not wait for who does not take leave") {
  const Oracle oracle(video_case());
  ServiceHarness harness(oracle.problem());
  WebLimits limits;
  limits.close_seconds = 0.2;
  FrontServer server(harness.service(), hello_of(oracle.problem(), harness.service()), limits);
  RawClient silent(server.port());
  silent.send(websocket_request(server.port()));
  REQUIRE(status_of(silent.receive_answer()) == 101);
  silent.send(websocket_frame(kText, server.token()));
  REQUIRE(silent.receive_frame().second.starts_with("attnscope tiles "));
  const auto begin = std::chrono::steady_clock::now();
  server.stop();
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(5));
  CHECK(silent.receive_close().first == 1001);
}

TEST_CASE("a window that does not even answer whether it is there is given up") {
  const Oracle oracle(video_case());
  ServiceHarness harness(oracle.problem());
  WebLimits limits;
  limits.silence_seconds = 0.3;
  FrontServer server(harness.service(), hello_of(oracle.problem(), harness.service()), limits);
  RawClient silent(server.port());
  silent.send(websocket_request(server.port()));
  REQUIRE(status_of(silent.receive_answer()) == 101);
  silent.send(websocket_frame(kText, server.token()));
  REQUIRE(becomes([&] { return server.farewells().size() == 1; }));
  CHECK(server.farewells()[0] == "it does not answer");
}
