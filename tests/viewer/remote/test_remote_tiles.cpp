// A window's side and a server's side that talk to each other: what comes, and in which order.
#include <algorithm>
#include <cstring>

#include "tests/support/backend/fake_backend.h"
#include "tests/support/catch.h"
#include "tests/support/tensor_files.h"
#include "tests/viewer/remote/remote_pair.h"
#include "viewer/remote/remote_link.h"
#include "viewer/remote/wire_values.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

WishesByKind wish_for_tiles(const std::vector<TileId>& tiles) {
  WishesByKind wishes;
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
  WishesByKind wishes = wish_for_tiles({{kHead, Quantity::weights, 2, 0, 0, {}},
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
      const auto tile = find(pair.client(), id);
      if (!tile || !tile->exact) return false;
    }
    const auto divergence = find(pair.client(), *wishes.divergence);
    const auto tracks = find(pair.client(), TracksRequest{kHead});
    const auto sketch = find(pair.client(), SketchRequest{kHead});
    const auto mask = find(pair.client(), *wishes.mask);
    return divergence && divergence->exact && tracks && tracks->exact && sketch && sketch->exact &&
           mask && mask->all_rows && !pair.client().status().busy;
  };
  REQUIRE(pair.wait(harness, all_exact));
  TileService& there = harness.service();
  for (const TileId& id : wishes.tiles) {
    const auto a = find(there, id), b = find(pair.client(), id);
    CHECK(b->id == id);
    CHECK(a->rows == b->rows);
    CHECK(a->rows_per_texel == b->rows_per_texel);
    CHECK(same_floats(a->max, b->max));
    CHECK(same_floats(a->mean, b->mean));
    // And there is something in it.
    CHECK(std::any_of(b->max.begin(), b->max.end(), [](float v) { return v != 0; }));
  }
  for (const auto& line : {*wishes.line, *wishes.other_line}) {
    CHECK(same_floats(find(there, line)->values, find(pair.client(), line)->values));
    CHECK(find(pair.client(), line)->request == line);
  }
  const auto entry = find(pair.client(), wishes.probes[0]);
  REQUIRE(entry);
  CHECK(entry->weight == find(there, wishes.probes[0])->weight);
  CHECK(entry->weight > 0);
  CHECK(
      same_sketch(*find(there, SketchRequest{kHead}), *find(pair.client(), SketchRequest{kHead})));
  CHECK(find(there, *wishes.masses)->masses == find(pair.client(), *wishes.masses)->masses);
  CHECK(to_wire(*find(there, TracksRequest{kHead})) ==
        to_wire(*find(pair.client(), TracksRequest{kHead})));
  CHECK(find(there, *wishes.divergence)->rows == find(pair.client(), *wishes.divergence)->rows);
  CHECK(find(there, *wishes.mask)->kept == find(pair.client(), *wishes.mask)->kept);
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
  WishesByKind wishes;
  wishes.tiles = {id, plain};
  wishes.exact = {head, kHead};
  pair.client().want(wishes);
  REQUIRE(pair.wait(harness, [&] {
    const auto tile = find(pair.client(), id), stored = find(pair.client(), plain);
    return tile && tile->exact && stored && stored->exact;
  }));
  // Row and column 0 of the reversed map are 299 of the stored one.
  CHECK(find(pair.client(), id)->max[0] == find(pair.client(), plain)->max[43 * 44 + 43]);
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
      const auto tile = find(pair.client(), id);
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
  CHECK_FALSE(find(pair.client(), at(0, 0)));
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
  // The entry that the mouse points at now comes as soon as there is room, before all other tiles.
  WishesByKind wishes = wish_for_tiles(tiles);
  wishes.probes = {{kHead, 2000, 17}};
  pair.client().want(wishes);
  REQUIRE(pair.wait(harness, [&] { return find(pair.client(), wishes.probes[0]) != nullptr; }));
  REQUIRE(pair.wait(harness, [&] { return !pair.client().status().busy; }));
  for (const TileId& id : tiles) CHECK(find(pair.client(), id));
  // Once each.
  CHECK(first + pair.take_items().size() == tiles.size() + 1);
}

TEST_CASE("a picture that is not there at all comes before the lines, and only then") {
  const AttentionProblem problem = rule_problem(2, 2, 1200, 1200, 16);
  ServiceHarness harness(problem, ServiceHarness::small_settings(),
                         std::make_unique<FakeBackend>());
  Pair pair(problem, harness.service());
  const auto kinds = [&](int64_t query, int64_t col) {
    WishesByKind wishes = wish_for_tiles(
        {{kHead, Quantity::weights, 1, 0, 0, {}}, {kHead, Quantity::weights, 0, 0, col, {}}});
    LineRequest line;
    line.head = kHead;
    line.tokens = {query};
    wishes.line = line;
    // All of it is there before it is asked for.
    harness.want(wishes);
    REQUIRE(harness.wait_idle());
    pair.client().want(wishes);
    REQUIRE(pair.wait(harness, [&] {
      return find(pair.client(), line) && find(pair.client(), wishes.tiles.back());
    }));
    std::string order;
    for (const Ask& ask : pair.take_items()) {
      order += std::holds_alternative<LineRequest>(ask) ? 'l' : 't';
    }
    return order;
  };
  CHECK(kinds(3, 0) == "tlt");
  // A finer tile may wait for the line.
  CHECK(kinds(4, 1) == "lt");
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
  REQUIRE(pair.wait(harness, [&] { return find(pair.client(), good) != nullptr; }));
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
  REQUIRE(pair.wait(harness, [&] { return find(pair.client(), first) != nullptr; }));
  pair.client().set_problem("the connection was lost; trying again in 1 s");
  CHECK(pair.client().status().problem == "there: the connection was lost; trying again in 1 s");
  CHECK(find(pair.client(), first));
  pair.client().want(wish_for_tiles({second}));
  REQUIRE(pair.reconnect());
  CHECK(pair.client().status().problem.empty());
  REQUIRE(pair.wait(harness, [&] { return find(pair.client(), second) != nullptr; }));
  CHECK(find(pair.client(), first));
}

TEST_CASE("a line that breaks again and brought nothing new is a problem of those who wait") {
  const AttentionProblem problem = rule_problem(2, 2, 600, 600, 16);
  ServiceHarness harness(problem, ServiceHarness::small_settings(),
                         std::make_unique<FakeBackend>());
  Pair pair(problem, harness.service());
  const TileId first{kHead, Quantity::weights, 0, 0, 0, {}},
      second{kHead, Quantity::weights, 0, 1, 1, {}};
  const auto problem_now = [&] { return pair.client().link_problem(); };
  pair.client().count_loss("the connection was lost");
  CHECK(problem_now() == "");
  REQUIRE(pair.reconnect());
  pair.client().want(wish_for_tiles({first}));
  REQUIRE(pair.wait(harness, [&] { return find(pair.client(), first) != nullptr; }));
  // It came further: that was a loss like the first one.
  pair.client().count_loss("the connection was lost");
  CHECK(problem_now() == "");
  pair.client().count_loss("nobody is\x1b there");
  CHECK(problem_now() == "there: nobody is\\x1b there");
  pair.client().count_loss("there: it is down");
  CHECK(problem_now() == "there: it is down");
  // A tile that is there already does not end the problem; a new one does.
  REQUIRE(pair.reconnect());
  pair.client().want(wish_for_tiles({first}));
  pair.exchange();
  CHECK(problem_now() != "");
  pair.client().want(wish_for_tiles({second}));
  REQUIRE(pair.wait(harness, [&] { return find(pair.client(), second) != nullptr; }));
  CHECK(problem_now() == "");
}

TEST_CASE("a server that says nothing is not waited for without an end") {
  const std::string greeting =
      "printf '\\nattnscope tiles " + std::to_string(kProtocol) + " 0.1.0\\n'; ";
  for (const std::string& said : {std::string(), greeting}) {
    INFO(said);
    RemoteProgram program;
    program.name = "there";
    program.words = [&](bool) {
      return std::vector<std::string>{"/bin/sh", "-c", said + "exec sleep 600"};
    };
    program.silent_seconds = 0.3;
    const std::string text =
        thrown_text(ErrorCode::unavailable, [&] { RemoteLink(program, std::stop_token()); });
    CHECK(text.starts_with("there: nothing came for 0 s"));
    CHECK((text.find("once it had greeted") != std::string::npos) == !said.empty());
  }
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
  CHECK_FALSE(pair.client().problem(TileId{kHead}).empty());
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
