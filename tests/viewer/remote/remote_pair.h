#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/backend/attention_case.h"
#include "tests/support/catch.h"
#include "tests/support/service_harness.h"
#include "viewer/remote/remote_tile_source.h"
#include "viewer/remote/tile_server.h"
#include "viewer/view/maps/map_source.h"

namespace attnscope::test {

inline constexpr HeadId kHead{0, 1, 1};

inline RemoteHello hello_of(const AttentionProblem& problem, const TileSource& tiles) {
  RemoteHello hello;
  hello.version = "test";
  MapSource call;
  call.name = "call";
  call.branches = {"cond"};
  for (int64_t b = 0; b < problem.batch(); ++b) call.batch.push_back(b);
  for (int64_t h = 0; h < problem.num_heads(); ++h) call.heads.push_back(h);
  call.queries = problem.query_tokens();
  call.keys = problem.key_tokens();
  call.rows = {0, problem.num_queries()};
  call.cols = {0, problem.num_keys()};
  hello.calls = {call};
  hello.own_calls = 1;
  hello.offers = offers_of(tiles);
  return hello;
}

/// Both sides over one source, and the bytes between them.
class Pair {
 public:
  Pair(const AttentionProblem& problem, TileSource& tiles, int64_t memory = int64_t{64} << 20)
      : tiles_(&tiles), hello_(hello_of(problem, tiles)) {
    connect();
    client_ = std::make_unique<RemoteTileSource>("there", hello_, memory, [] {});
    take_hello();
  }

  RemoteTileSource& client() { return *client_; }
  TileServer& server() { return *server_; }
  size_t bytes() const { return bytes_; }

  /// Everything that both sides have to say now reaches the other; `thanks`: the client says what
  /// it has received.
  void exchange(bool thanks = true) {
    server_->look();
    for (bool more = true; more;) {
      more = false;
      for (const Message& message : client_->outgoing()) {
        (message.type == MessageType::received ? thanks_ : said_).push_back(message);
      }
      for (const Message& message : std::exchange(said_, {})) {
        server_->take(through(message, kMostFromClient));
        more = true;
      }
      for (const Message& message : thanks ? std::exchange(thanks_, {}) : std::vector<Message>{}) {
        server_->take(through(message, kMostFromClient));
        more = true;
      }
      while (const auto message = server_->next(now_ += 1)) {
        if (message->type == MessageType::item) items_.push_back(read_item(message->body).ask);
        client_->take(through(*message, kMostFromServer));
        more = true;
      }
    }
  }
  bool wait(ServiceHarness& harness, const std::function<bool()>& ready) {
    return harness.wait([&] {
      exchange();
      return ready();
    });
  }
  /// The line is lost, and there is another one, to the same or to another source.
  bool reconnect(TileSource* other = nullptr) {
    if (other != nullptr) tiles_ = other;
    connect();
    const auto message = server_->next(0);
    return client_->reopened(read_hello(message->body));
  }
  std::vector<Ask> take_items() { return std::exchange(items_, {}); }

 private:
  void connect() {
    server_ = std::make_unique<TileServer>(*tiles_, hello_, TileServer::Watched{});
    server_->take({MessageType::greeted, to_wire(kProtocol)});
  }
  void take_hello() {
    const auto message = server_->next(0);
    REQUIRE(message->type == MessageType::hello);
  }
  Message through(const Message& message, size_t most) {
    std::string frame = to_frame(message);
    bytes_ += frame.size();
    const auto out = take_frame(frame, most);
    REQUIRE(out);
    REQUIRE(frame.empty());
    return *out;
  }

  TileSource* tiles_;
  RemoteHello hello_;
  std::unique_ptr<TileServer> server_;
  std::unique_ptr<RemoteTileSource> client_;
  std::vector<Ask> items_;
  std::vector<Message> said_, thanks_;
  size_t bytes_ = 0;
  double now_ = 1;
};

/// Heads of a video of 10×6×10 cells, whose map has two tiles by three.
inline AttentionCase video_case() {
  AttentionCase c;
  c.shape = {2, 2, 2, 600, 600, 16};
  c.grid = {10, 6, 10};
  return c;
}

}  // namespace attnscope::test
