// A window's side and a server's side that talk to each other: what comes, in which order, and what
// either does about the other's mistakes.
#include <algorithm>
#include <cstring>
#include <deque>
#include <set>

#include "core/base/error.h"
#include "tests/support/backend/attention_case.h"
#include "tests/support/backend/fake_backend.h"
#include "tests/support/catch.h"
#include "tests/support/service_harness.h"
#include "viewer/remote/remote_tile_source.h"
#include "viewer/remote/tile_server.h"
#include "viewer/remote/wire_values.h"
#include "viewer/view/map_source.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

constexpr HeadId kHead{0, 1, 1};

RemoteHello hello_of(const AttentionProblem& problem, const TileSource& tiles) {
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
  hello.sketches = tiles.has_sketches();
  hello.masses = tiles.has_masses();
  hello.tracks = tiles.has_tracks();
  hello.masks = tiles.has_masks();
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
AttentionCase video_case() {
  AttentionCase c;
  c.shape = {2, 2, 2, 600, 600, 16};
  c.grid = {10, 6, 10};
  return c;
}

WantedTiles wish_for_tiles(const std::vector<TileId>& tiles) {
  WantedTiles wishes;
  wishes.tiles = tiles;
  wishes.exact = {kHead};
  return wishes;
}

bool same_floats(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace

TEST_CASE("everything that a source finds comes over a line as it is, bit for bit") {
  const Oracle oracle(video_case());
  ServiceHarness harness(oracle.problem());
  Pair pair(oracle.problem(), harness.service());
  WantedTiles wishes = wish_for_tiles({{kHead, Quantity::weights, 2, 0, 0, {}},
                                       {kHead, Quantity::weights, 0, 1, 2, {}},
                                       {kHead, Quantity::logits, 0, 0, 0, {}}});
  const HeadId other{0, 0, 0};
  wishes.tiles.push_back(
      {kHead, Quantity::weights, 0, 0, 0, Against{other, Difference::signed_difference}});
  wishes.line = LineRequest{kHead, Quantity::weights, false, {17}, false};
  wishes.other_line = LineRequest{kHead, Quantity::weights, true, {3, 4}, false};
  wishes.probes = {{kHead, 599, 598}};
  wishes.sketches = {kHead, other};
  wishes.exact_sketches = {kHead};
  wishes.masses = MassRequest{kHead, {0, 600}, {0, 40}};
  wishes.tracks = kHead;
  wishes.divergence = HeadsCompared{kHead, other};
  wishes.mask = MaskRequest{kHead, "window:100", 128, {}, false};
  pair.client().want(wishes);
  CHECK(pair.client().status().busy);
  const auto all_exact = [&] {
    for (const TileId& id : wishes.tiles) {
      const auto tile = pair.client().find(id);
      if (!tile || !tile->exact) return false;
    }
    const auto divergence = pair.client().find_divergence(*wishes.divergence);
    const auto tracks = pair.client().find_tracks(kHead);
    const auto sketch = pair.client().find_sketch(kHead);
    const auto mask = pair.client().find_mask(*wishes.mask);
    return divergence && divergence->exact && tracks && tracks->exact && sketch && sketch->exact &&
           mask && mask->all_rows && !pair.client().status().busy;
  };
  REQUIRE(pair.wait(harness, all_exact));
  TileService& there = harness.service();
  for (const TileId& id : wishes.tiles) {
    const auto a = there.find(id), b = pair.client().find(id);
    CHECK(b->id == id);
    CHECK(a->rows == b->rows);
    CHECK(a->rows_per_texel == b->rows_per_texel);
    CHECK(same_floats(a->max, b->max));
    CHECK(same_floats(a->mean, b->mean));
    // And there is something in it.
    CHECK(std::any_of(b->max.begin(), b->max.end(), [](float v) { return v != 0; }));
  }
  for (const auto& line : {*wishes.line, *wishes.other_line}) {
    CHECK(same_floats(there.find_line(line)->values, pair.client().find_line(line)->values));
    CHECK(pair.client().find_line(line)->request == line);
  }
  const auto entry = pair.client().find_probe(wishes.probes[0]);
  REQUIRE(entry);
  CHECK(entry->weight == there.find_probe(wishes.probes[0])->weight);
  CHECK(entry->weight > 0);
  CHECK(same_sketch(*there.find_sketch(kHead), *pair.client().find_sketch(kHead)));
  CHECK(there.find_masses(*wishes.masses)->masses ==
        pair.client().find_masses(*wishes.masses)->masses);
  CHECK(to_wire(*there.find_tracks(kHead)) == to_wire(*pair.client().find_tracks(kHead)));
  CHECK(there.find_divergence(*wishes.divergence)->rows ==
        pair.client().find_divergence(*wishes.divergence)->rows);
  CHECK(there.find_mask(*wishes.mask)->kept == pair.client().find_mask(*wishes.mask)->kept);
  CHECK(there.exact(kHead) == pair.client().exact(kHead));
  CHECK(pair.client().geometry(kHead).rows == 600);
  CHECK(pair.client().status().problem.empty());
}

TEST_CASE("a tile in another order of the tokens is asked for by the client's number of it") {
  AttentionCase few = video_case();
  few.shape.queries = few.shape.keys = 300;
  few.grid = {5, 6, 10};
  const Oracle oracle(few);
  ServiceHarness harness(oracle.problem());
  Pair pair(oracle.problem(), harness.service());
  std::vector<int32_t> reversed(300);
  for (int32_t i = 0; i < 300; ++i) reversed[static_cast<size_t>(i)] = 299 - i;
  // The server's source has given away a number of its own before.
  std::vector<int32_t> swapped(300);
  for (int32_t i = 0; i < 300; ++i) swapped[static_cast<size_t>(i)] = i ^ 1;
  const PlaceOrder first(swapped);
  REQUIRE(harness.service().order_number({first, first}) == 1);
  const PlaceOrder order(reversed);
  HeadId head = kHead;
  head.order = pair.client().order_number({order, order});
  CHECK(head.order == 1);
  CHECK(pair.client().order_number({order, order}) == 1);
  const TileId id{head, Quantity::weights, 0, 0, 0, {}},
      plain{kHead, Quantity::weights, 0, 1, 1, {}};
  WantedTiles wishes;
  wishes.tiles = {id, plain};
  wishes.exact = {head, kHead};
  pair.client().want(wishes);
  REQUIRE(pair.wait(harness, [&] {
    const auto tile = pair.client().find(id), stored = pair.client().find(plain);
    return tile && tile->exact && stored && stored->exact;
  }));
  // Row and column 0 of the reversed map are 299 of the stored one.
  CHECK(pair.client().find(id)->max[0] == pair.client().find(plain)->max[43 * 44 + 43]);
}

TEST_CASE("what was sent is not sent again, and what the client gave up is") {
  const AttentionProblem problem = rule_problem(2, 2, 1200, 1200, 16);
  ServiceHarness harness(problem, ServiceHarness::small_settings(),
                         std::make_unique<FakeBackend>());
  // Room for a few tiles.
  Pair pair(problem, harness.service(), int64_t{3} << 19);
  const auto at = [](int64_t row, int64_t col) {
    return TileId{kHead, Quantity::weights, 0, row, col, {}};
  };
  const auto bring = [&](const TileId& id) {
    pair.client().want(wish_for_tiles({id}));
    REQUIRE(pair.wait(harness, [&] {
      const auto tile = pair.client().find(id);
      return tile && tile->exact && !pair.client().status().busy;
    }));
    const std::vector<Ask> items = pair.take_items();
    return std::count_if(items.begin(), items.end(), [&](const Ask& ask) {
      return std::holds_alternative<TileId>(ask) && std::get<TileId>(ask) == id;
    });
  };
  CHECK(bring(at(0, 0)) >= 1);
  CHECK(bring(at(0, 1)) >= 1);
  CHECK(bring(at(0, 0)) == 0);
  for (int64_t col = 0; col < 4; ++col) bring(at(1, col));
  CHECK_FALSE(pair.client().find(at(0, 0)));
  CHECK(bring(at(0, 0)) == 1);
  CHECK(pair.client().status().host_bytes < (int64_t{3} << 19));
}

TEST_CASE("no more is under way than the window, and a new wish overtakes the old ones") {
  const AttentionProblem problem = rule_problem(2, 2, 2300, 2300, 16);
  ServiceHarness harness(problem, ServiceHarness::small_settings(),
                         std::make_unique<FakeBackend>());
  Pair pair(problem, harness.service());
  std::vector<TileId> tiles;
  for (int64_t row = 0; row < 8; ++row) {
    for (int64_t col = 0; col < 8; ++col) {
      tiles.push_back({kHead, Quantity::weights, 0, row, col, {}});
    }
  }
  // All of it is there before the client thanks for anything.
  harness.want(wish_for_tiles(tiles));
  REQUIRE(harness.wait_idle());
  pair.client().want(wish_for_tiles(tiles));
  pair.exchange(false);
  REQUIRE(harness.wait_idle());
  pair.exchange(false);
  const size_t first = pair.take_items().size();
  CHECK(first >= 4);
  CHECK(first < tiles.size());
  // The state says that there is more.
  CHECK(pair.client().status().busy);
  // What the mouse points at now comes as soon as there is room, before all other tiles.
  WantedTiles wishes = wish_for_tiles(tiles);
  wishes.probes = {{kHead, 2000, 17}};
  pair.client().want(wishes);
  REQUIRE(
      pair.wait(harness, [&] { return pair.client().find_probe(wishes.probes[0]).has_value(); }));
  REQUIRE(pair.wait(harness, [&] { return !pair.client().status().busy; }));
  for (const TileId& id : tiles) CHECK(pair.client().find(id));
  // Once each.
  CHECK(first + pair.take_items().size() == tiles.size() + 1);
}

TEST_CASE("a wish that the source refuses is told, and the next one is served") {
  const AttentionProblem problem = rule_problem(2, 2, 300, 300, 16);
  ServiceHarness harness(problem, ServiceHarness::small_settings(),
                         std::make_unique<FakeBackend>());
  Pair pair(problem, harness.service());
  pair.client().want(wish_for_tiles({{kHead, Quantity::weights, 9, 0, 0, {}}}));
  pair.exchange();
  CHECK(pair.client().status().problem.find("there: no tile at row 0") == 0);
  const TileId good{kHead, Quantity::weights, 0, 0, 0, {}};
  pair.client().want(wish_for_tiles({good}));
  REQUIRE(pair.wait(harness, [&] { return pair.client().find(good) != nullptr; }));
  CHECK(pair.client().status().problem.empty());
}

TEST_CASE("after a lost line what came is still there, and the wishes go on") {
  const AttentionProblem problem = rule_problem(2, 2, 600, 600, 16);
  ServiceHarness harness(problem, ServiceHarness::small_settings(),
                         std::make_unique<FakeBackend>());
  Pair pair(problem, harness.service());
  const TileId first{kHead, Quantity::weights, 0, 0, 0, {}},
      second{kHead, Quantity::weights, 0, 1, 1, {}};
  pair.client().want(wish_for_tiles({first}));
  REQUIRE(pair.wait(harness, [&] { return pair.client().find(first) != nullptr; }));
  pair.client().set_problem("the connection was lost; trying again in 1 s");
  CHECK(pair.client().status().problem == "there: the connection was lost; trying again in 1 s");
  CHECK(pair.client().find(first));
  pair.client().want(wish_for_tiles({second}));
  REQUIRE(pair.reconnect());
  CHECK(pair.client().status().problem.empty());
  REQUIRE(pair.wait(harness, [&] { return pair.client().find(second) != nullptr; }));
  CHECK(pair.client().find(first));
}

TEST_CASE("other calls behind a new line are not taken for those that were shown") {
  const AttentionProblem problem = rule_problem(2, 2, 600, 600, 16);
  ServiceHarness harness(problem, ServiceHarness::small_settings(),
                         std::make_unique<FakeBackend>());
  Pair pair(problem, harness.service());
  RemoteHello changed = hello_of(problem, harness.service());
  changed.calls[0].step = 4;
  CHECK_FALSE(pair.client().reopened(changed));
  CHECK(pair.client().status().problem.find("holds other calls") != std::string::npos);
  // Who waits for tiles learns that they will not come.
  CHECK_FALSE(pair.client().status().busy);
  CHECK_FALSE(pair.client().status().tiles_problem.empty());
  // Calls that were added while nobody listened are added.
  Pair grown(problem, harness.service());
  RemoteHello more = hello_of(problem, harness.service());
  more.calls.push_back(more.calls[0]);
  more.calls[1].step = 9;
  more.own_calls = 2;
  CHECK(grown.client().reopened(more));
  const auto added = grown.client().take_added();
  REQUIRE(added.size() == 1);
  CHECK(added[0].calls.at(0).step == 9);
  CHECK(grown.client().geometry({1, 0, 0}).rows == 600);
}

TEST_CASE("a server that lies is not believed") {
  const AttentionProblem problem = rule_problem(2, 2, 600, 700, 16);
  ServiceHarness harness(problem, ServiceHarness::small_settings(),
                         std::make_unique<FakeBackend>());
  const auto refused = [&](const Ask& ask, const Answer& answer, uint64_t number = 1) {
    Pair pair(problem, harness.service());
    CHECK_THROWS_AS(pair.client().take({MessageType::item, item_body(number, ask, answer)}), Error);
  };
  MapTile tile;
  tile.rows = tile.cols = 256;
  tile.max.assign(256 * 256, 0.5f);
  tile.mean = tile.max;
  const TileId id{kHead, Quantity::weights, 0, 0, 0, {}};
  const auto shared = [](auto value) {
    return std::make_shared<const decltype(value)>(std::move(value));
  };
  {
    Pair pair(problem, harness.service());
    pair.client().take({MessageType::item, item_body(1, id, shared(tile))});
    CHECK(pair.client().find(id));
  }
  refused(id, shared(tile), 2);
  refused({TileId{kHead, Quantity::weights, 0, 5, 0, {}}}, shared(tile));
  refused({TileId{{3, 0, 0}, Quantity::weights, 0, 0, 0, {}}}, shared(tile));
  MapTile narrow = tile;
  narrow.cols = 200;
  refused(id, shared(narrow));
  MapTile poor = tile;
  poor.max.pop_back();
  refused(id, shared(poor));
  const LineRequest line{kHead, Quantity::weights, false, {1}, false};
  refused(line, shared(MapLine{line, std::vector<float>(600), {}}));
  refused(SketchAsked{kHead}, shared(HeadSketch{}));
  HeadTracks tracks;
  tracks.entropy.assign(599, 1.0);
  refused(TracksAsked{kHead}, shared(tracks));
  VideoFrame frame;
  frame.image = {64, 64, std::vector<uint8_t>(64 * 64)};
  frame.width = frame.height = 64;
  refused(FrameRequest{0, 64, 48}, shared(frame));
  HeadMask mask;
  mask.query_blocks = mask.key_blocks = 1 << 20;
  refused(MaskRequest{kHead, "causal", 128, {}, false}, shared(mask));
  Pair pair(problem, harness.service());
  CHECK_THROWS_AS(pair.client().take({MessageType::wanted, ""}), Error);
}

TEST_CASE("a client that lies is not served") {
  const AttentionProblem problem = rule_problem(2, 2, 600, 600, 16);
  ServiceHarness harness(problem, ServiceHarness::small_settings(),
                         std::make_unique<FakeBackend>());
  const auto server = [&](bool greeted = true) {
    auto made = std::make_unique<TileServer>(
        harness.service(), hello_of(problem, harness.service()), TileServer::Watched{});
    if (greeted) made->take({MessageType::greeted, to_wire(kProtocol)});
    return made;
  };
  CHECK_THROWS_AS(server(false)->take({MessageType::ping, "x"}), Error);
  CHECK_THROWS_AS(server(false)->take({MessageType::greeted, to_wire(kProtocol + 1)}), Error);
  CHECK_THROWS_AS(server()->take({MessageType::greeted, to_wire(kProtocol)}), Error);
  CHECK_THROWS_AS(server()->take({MessageType::hello, ""}), Error);
  CHECK_THROWS_AS(server()->take({MessageType::ping, std::string(65, 'x')}), Error);
  CHECK_THROWS_AS(server()->take({MessageType::received, to_wire(uint64_t{5})}), Error);
  RemoteWanted wanted{1, 0, {}, {}};
  wanted.wishes.tiles = {{{0, 0, 0, 7}, Quantity::weights, 0, 0, 0, {}}};
  wanted.held = {0};
  CHECK_THROWS_AS(server()->take({MessageType::wanted, to_body(wanted)}), Error);
  wanted.wishes.tiles[0].head.order = 0;
  const auto made = server();
  made->take({MessageType::wanted, to_body(wanted)});
  // Not twice under one number.
  CHECK_THROWS_AS(made->take({MessageType::wanted, to_body(wanted)}), Error);
  const auto flooded = server();
  CHECK_THROWS_AS(
      [&] {
        for (int i = 0; i < 100000; ++i) flooded->take({MessageType::ping, "x"});
      }(),
      Error);
}
