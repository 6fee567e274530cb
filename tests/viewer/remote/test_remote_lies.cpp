// Client and server against lies of the other: nothing that was not asked for, does not fit the
// maps or is not there is believed, looked up or begun with.
#include <functional>
#include <limits>

#include "core/base/error.h"
#include "tests/support/backend/fake_backend.h"
#include "tests/support/catch.h"
#include "tests/support/helpers.h"
#include "tests/viewer/remote/remote_pair.h"
#include "viewer/remote/wire_values.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

/// Wishes for what maps of 600 × 700 entries do not have.
class Refusals {
 public:
  /// Empty: they were not refused.
  std::string answer(const WishesByKind& wishes) {
    pair_.client().want({});
    pair_.exchange();
    pair_.client().want(wishes);
    pair_.exchange();
    return pair_.client().status().problem;
  }
  void check(const std::vector<WishesByKind>& lies) {
    for (const WishesByKind& wishes : lies) {
      CHECK(answer(wishes) != "");
      // It was no work that failed: nothing of it was begun with.
      CHECK(harness_.service().status().queue == 0);
      CHECK(harness_.service().status().problem == "");
    }
  }

 private:
  static TileService::Settings settings() {
    TileService::Settings settings = ServiceHarness::small_settings();
    settings.read_frame = [](int64_t) { return GreyImage{8, 4, std::vector<uint8_t>(32)}; };
    return settings;
  }
  const AttentionProblem problem_ = rule_problem(2, 2, 600, 700, 16);
  ServiceHarness harness_{problem_, settings(), std::make_unique<FakeBackend>()};
  Pair pair_{problem_, harness_.service()};
};

constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();

}  // namespace

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
    CHECK(find(pair.client(), id));
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
  refused(SketchRequest{kHead}, shared(HeadSketch{}));
  HeadTracks tracks;
  tracks.query_groups = tracks.key_groups = 2;
  tracks.group_mass.assign(4, 0.5);
  {
    Pair pair(problem, harness.service());
    pair.client().take({MessageType::item, item_body(1, TracksRequest{kHead}, shared(tracks))});
    CHECK(find(pair.client(), TracksRequest{kHead}));
  }
  const auto changed = [&](const std::function<void(HeadTracks&)>& change) {
    HeadTracks lie = tracks;
    change(lie);
    refused(TracksRequest{kHead}, shared(lie));
  };
  changed([](HeadTracks& t) { t.entropy.assign(599, 1.0); });
  changed([](HeadTracks& t) { t.column_mass.assign(701, 1.0); });
  // A frame's mass is looked up by its number, a mean by the distance of two frames.
  changed([](HeadTracks& t) { t.group_mass.clear(); });
  changed([](HeadTracks& t) {
    t.query_groups = 1;
    t.group_mass.resize(2);
  });
  changed([](HeadTracks& t) { t.by_dt = t.by_dy = t.by_dx = {0.5}; });
  VideoFrame frame;
  frame.image = {64, 64, std::vector<uint8_t>(64 * 64)};
  frame.width = frame.height = 64;
  refused(FrameRequest{0, 64, 48}, shared(frame));
  HeadMask mask;
  mask.query_blocks = mask.key_blocks = 1 << 20;
  refused(MaskRequest{kHead, "causal", 128, {}, false}, shared(mask));
  mask.query_blocks = mask.key_blocks = 1;
  mask.kept = {1};
  refused(MaskRequest{kHead, "causal", 128, {}, false}, shared(mask));
  KeyMasses masses;
  refused(MassRequest{kHead, {0, 600}, {std::numeric_limits<int64_t>::max(), 0}}, shared(masses));
  masses.masses.assign(2, 0.5);
  refused(MassRequest{kHead, {0, 600}, {699, 701}}, shared(masses));
  Pair pair(problem, harness.service());
  CHECK_THROWS_AS(pair.client().take({MessageType::wanted, ""}), Error);
}

TEST_CASE("a server's offsets have the grid's distances") {
  const Oracle oracle(video_case());
  ServiceHarness harness(oracle.problem());
  HeadTracks tracks;
  tracks.query_groups = tracks.key_groups = 11;
  tracks.group_mass.assign(121, 0.5);
  tracks.by_dt.assign(19, 0.5);
  tracks.by_dy.assign(11, 0.5);
  tracks.by_dx.assign(19, 0.5);
  const auto take = [&](const HeadTracks& sent) {
    Pair pair(oracle.problem(), harness.service());
    pair.client().take({MessageType::item, item_body(1, TracksRequest{kHead},
                                                     std::make_shared<const HeadTracks>(sent))});
  };
  CHECK_NOTHROW(take(tracks));
  for (auto* list : {&tracks.by_dt, &tracks.by_dy, &tracks.by_dx}) {
    const std::vector<double> right = *list;
    list->pop_back();
    list->pop_back();
    CHECK_THROWS_AS(take(tracks), Error);
    list->clear();
    CHECK_THROWS_AS(take(tracks), Error);
    *list = right;
  }
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
  wanted.wishes = {{TileId{{0, 0, 0, 7}, Quantity::weights, 0, 0, 0, {}}}};
  wanted.held = {0};
  CHECK_THROWS_AS(server()->take({MessageType::wanted, to_body(wanted)}), Error);
  std::get<TileId>(wanted.wishes[0].ask).head.order = 0;
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

TEST_CASE("an order is named for maps of its length alone, and for nothing but maps") {
  const AttentionProblem problem = rule_problem(2, 2, 600, 700, 16);
  ServiceHarness harness(problem, ServiceHarness::small_settings(),
                         std::make_unique<FakeBackend>());
  const auto turned = [](int32_t count) {
    std::vector<int32_t> tokens(static_cast<size_t>(count));
    for (int32_t i = 0; i < count; ++i) tokens[static_cast<size_t>(i)] = count - 1 - i;
    return tokens;
  };
  const HeadId ordered{0, 1, 1, 5};
  const Against against{ordered, Difference::signed_difference};
  WishesByKind tile, difference, pass, difference_pass, mask;
  tile.tiles = {{ordered, Quantity::weights, 0, 0, 0, {}}};
  difference.tiles = {{kHead, Quantity::weights, 0, 0, 0, against}};
  pass.exact = {ordered};
  difference_pass.exact_differences = {{kHead, Quantity::weights, against}};
  mask.mask = MaskRequest{ordered, "causal", 128, {}, false};
  const std::vector<WishesByKind> named{tile, difference, pass, difference_pass, mask};
  const auto want = [&](const RemoteOrder& order, const WishesByKind& wishes) {
    TileServer server(harness.service(), hello_of(problem, harness.service()), {});
    server.take({MessageType::greeted, to_wire(kProtocol)});
    server.take({MessageType::order, to_body(order)});
    RemoteWanted wanted{1, 0, wishes, {}};
    wanted.held.resize(wanted.wishes.size());
    server.take({MessageType::wanted, to_body(wanted)});
    const auto hello = server.next(0);
    const auto answer = server.next(0);
    return answer && answer->type == MessageType::refused ? from_wire<std::string>(answer->body)
                                                          : "";
  };
  const std::string other = "an order of other tokens than the map's";
  for (const WishesByKind& wishes : named) {
    CHECK(want({5, turned(600), turned(700)}, wishes) == "");
    CHECK(want({5, {}, turned(700)}, wishes) == "");
    CHECK(want({5, turned(600), {}}, wishes) == "");
    for (const RemoteOrder& lie :
         {RemoteOrder{5, {1, 0, 2}, {1, 0, 2}}, RemoteOrder{5, turned(700), turned(700)},
          RemoteOrder{5, {}, turned(600)}, RemoteOrder{5, turned(601), {}}}) {
      CHECK(refused([&] { want(lie, wishes); }, ErrorCode::file, {other}) == "");
    }
  }
  // Of a head that is not there nobody can say.
  WishesByKind nowhere = tile;
  nowhere.tiles[0].head.call = 3;
  CHECK(want({5, {1, 0, 2}, {}}, nowhere) ==
        "the capture has no map of call 3, batch item 1, head 1");
  // Wishes that need the map's stored tokens are refused in another order.
  std::vector<WishesByKind> stored(9);
  const LineRequest line{ordered, Quantity::weights, false, {1}, false};
  stored[0].line = stored[1].other_line = stored[2].words_line = line;
  stored[3].probes = {{ordered, 1, 1}};
  stored[4].sketches = stored[5].exact_sketches = {ordered};
  stored[6].masses = MassRequest{ordered, {0, 600}, {0, 40}};
  stored[7].tracks = ordered;
  stored[8].divergence = HeadsCompared{kHead, ordered};
  for (const WishesByKind& wishes : stored) {
    CHECK(refused(
              [&] {
                want({5, turned(600), turned(700)}, wishes);
              },
              ErrorCode::file, {"stored tokens"}) == "");
  }
}

TEST_CASE("heads that there are none of are refused, not looked up") {
  std::vector<WishesByKind> lies;
  const auto lie = [&]() -> WishesByKind& { return lies.emplace_back(); };
  for (const HeadId& head : {HeadId{-1, 0, 0}, HeadId{1, 0, 0}, HeadId{0, -1, 0}, HeadId{0, 2, 0},
                             HeadId{0, 0, -1}, HeadId{0, 0, kLargest}}) {
    lie().tiles = {{head, Quantity::weights, 0, 0, 0, {}}};
    lie().exact = {head};
    lie().sketches = {head};
    lie().tracks = head;
    lie().probes = {{head, 0, 0}};
    lie().divergence = HeadsCompared{kHead, head};
    lie().mask = MaskRequest{head, "causal", 128, {}, false};
    lie().masses = MassRequest{head, {0, 600}, {0, 40}};
  }
  Refusals().check(lies);
}

TEST_CASE("places, tokens, levels and sizes that a map does not have are refused, not looked up") {
  Refusals refusals;
  const auto lines = [](int64_t token, bool reverse) {
    WishesByKind wishes;
    wishes.words_line = LineRequest{kHead, Quantity::weights, reverse, {token}, false};
    return wishes;
  };
  CHECK(refusals.answer(lines(599, false)) == "");
  for (const int64_t token : {int64_t{-1}, int64_t{600}, kLargest}) {
    CHECK(refusals.answer(lines(token, false)) ==
          "there: a line's tokens must ascend within 0 \u2026 599");
  }
  CHECK(refusals.answer(lines(700, true)) ==
        "there: a line's tokens must ascend within 0 \u2026 699");
  std::vector<WishesByKind> lies;
  const auto lie = [&]() -> WishesByKind& { return lies.emplace_back(); };
  for (const int level : {-1, 3, 63, 64, std::numeric_limits<int>::max()}) {
    lie().tiles = {{kHead, Quantity::weights, level, 0, 0, {}}};
  }
  for (const int64_t place : {int64_t{-1}, int64_t{3}, kLargest}) {
    lie().tiles = {{kHead, Quantity::weights, 0, place, 0, {}}};
    lie().tiles = {{kHead, Quantity::weights, 0, 0, place, {}}};
  }
  lie().probes = {{kHead, 600, 0}};
  lie().probes = {{kHead, 0, -1}};
  lie().masses = MassRequest{kHead, {0, 601}, {0, 40}};
  lie().masses = MassRequest{kHead, {0, 600}, {-1, 40}};
  lie().masses = MassRequest{kHead, {0, 600}, {kLargest, -kLargest}};
  for (const FrameRequest& frame :
       {FrameRequest{0, 0, 4}, FrameRequest{0, -8, -4}, FrameRequest{0, 8, 1 << 20}}) {
    lie().frames = {frame};
  }
  refusals.check(lies);
}
