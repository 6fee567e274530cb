#include "tests/support/catch.h"
#include "tests/support/helpers.h"
#include "viewer/commands/command_actions.h"
#include "viewer/view/maps/map_source.h"
#include "viewer/view/placed_map.h"
#include "viewer/view/view_actions.h"
#include "viewer/view/view_history.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

MapSource source(TokenGrid queries, TokenGrid keys) {
  MapSource call;
  call.name = "call";
  call.branches = {"all"};
  call.batch = {0};
  call.heads = {0, 1};
  call.rows = {0, queries.tokens()};
  call.cols = {0, keys.tokens()};
  call.queries = std::move(queries);
  call.keys = std::move(keys);
  return call;
}

/// Joint attention over 2 words and 2×3×4, cross-attention of 2×3×4 to 5 words, and 30 tokens of
/// which nothing is known.
std::vector<MapSource> calls() {
  const TokenGrid joint = TokenGrid::video(26, {2, 3, 4}, 2, TextPlace::start);
  const TokenGrid video = TokenGrid::video(24, {2, 3, 4}, 0, TextPlace::none);
  std::vector<MapSource> made{source(joint, joint), source(video, TokenGrid::text_only(5)),
                              source(TokenGrid::unknown(30), TokenGrid::unknown(30))};
  made[1].kind = CallKind::cross;
  return made;
}

ViewLimits limits() { return ViewLimits::of(calls()); }

ViewState after(ViewState state, const std::vector<Action>& actions) {
  for (const Action& each : actions) state = apply_action(state, each, limits());
  return state;
}

TokenOrder listed(std::vector<int64_t> list) {
  TokenOrder order;
  order.kind = TokenOrder::Kind::listed;
  order.file = "/there/order.npy";
  order.list = std::make_shared<const std::vector<int64_t>>(std::move(list));
  return order;
}

const TokenOrder kYxt = TokenOrder::parse("yxt"), kHilbert = TokenOrder::parse("hilbert");

}  // namespace

TEST_CASE("both sides take an order, or one of them") {
  const ViewState start = opened_view(limits());
  CHECK(start.order.is_stored());
  const ViewState both = after(start, {action::SetOrder{kYxt}});
  CHECK(both.order == MapOrder{kYxt, kYxt});
  const ViewState keys = after(both, {action::SetOrder{kHilbert, action::MapSide::keys}});
  CHECK(keys.order == MapOrder{kYxt, kHilbert});
  CHECK(keys.rect == start.rect);
  CHECK(order_text(start.order).empty());
  CHECK(order_text(both.order) == "order yxt");
  CHECK(order_text(keys.order) == "rows yxt, keys hilbert");
  CHECK(order_text({listed({0}), {}}) == "rows order.npy, keys as stored");
}

TEST_CASE("one key changes between two orders, first to y x t, and can be taken back") {
  ViewHistory history(opened_view(limits()));
  history.apply(action::FlipOrder{}, limits(), 0);
  CHECK(history.now().order == MapOrder{kYxt, kYxt});
  history.apply(action::SetOrder{kHilbert}, limits(), 1);
  history.apply(action::FlipOrder{}, limits(), 2);
  CHECK(history.now().order == MapOrder{kYxt, kYxt});
  history.apply(action::FlipOrder{}, limits(), 3);
  CHECK(history.now().order == MapOrder{kHilbert, kHilbert});
  history.undo();
  history.undo();
  history.undo();
  CHECK(history.now().order == MapOrder{kYxt, kYxt});
  history.undo();
  CHECK(history.now().order.is_stored());
}

TEST_CASE("of cross-attention the side with a grid takes the order") {
  const ViewState cross = after(opened_view(limits()), {action::SelectHead{{1, 0, 0}}});
  CHECK(after(cross, {action::SetOrder{kYxt}}).order == MapOrder{kYxt, {}});
  CHECK(after(cross, {action::FlipOrder{}}).order == MapOrder{kYxt, {}});
  CHECK(refused(
            [&] {
              after(cross, {action::SetOrder{kYxt, action::MapSide::keys}});
            },
            ErrorCode::usage, {"order yxt: no grid of the tokens is known"}) == "");
}

TEST_CASE("a head whose tokens have no such order is shown as it is stored") {
  const ViewState start = opened_view(limits());
  const ViewState ordered = after(start, {action::SetOrder{kYxt}});
  CHECK(after(ordered, {action::SelectHead{{0, 0, 1}}}).order == ordered.order);
  CHECK(after(ordered, {action::SelectHead{{2, 0, 0}}}).order.is_stored());
  CHECK(refused(
            [&] {
              after(start, {action::SelectHead{{2, 0, 0}}, action::FlipOrder{}});
            },
            ErrorCode::usage, {"no grid"}) == "");
  std::vector<int64_t> list(26);
  for (size_t i = 0; i < 26; ++i) list[i] = static_cast<int64_t>(25 - i);
  const ViewState of_list = after(start, {action::SetOrder{listed(list)}});
  CHECK(of_list.order.rows.list);
  CHECK(after(of_list, {action::SelectHead{{2, 0, 0}}}).order.is_stored());
  CHECK(refused(
            [&] {
              after(start, {action::SetOrder{listed({1, 0})}});
            },
            ErrorCode::usage, {"has 2 numbers, expected 26 or, of the grid alone, 24"}) == "");
}

TEST_CASE("what has no order but its own says so") {
  ViewLimits of_export = limits();
  of_export.computed = false;
  CHECK(refused([&] { apply_action(opened_view(of_export), action::SetOrder{kYxt}, of_export); },
                ErrorCode::usage, {"maps of an export stand in the order"}) == "");
  std::vector<MapSource> with_cache = calls();
  with_cache[0].evicted.push_back({});
  const ViewLimits evicted = ViewLimits::of(with_cache);
  CHECK(refused([&] { apply_action(opened_view(evicted), action::SetOrder{kYxt}, evicted); },
                ErrorCode::usage, {"a cache had dropped"}) == "");
}

TEST_CASE("tiles of a shown state name its order, and lines do not") {
  ViewState state =
      after(opened_view(limits()), {action::SetOrder{kYxt}, action::SetOther{{0, 0, 1}},
                                    action::SetDifference{Difference::absolute}});
  state.order_number = 4;
  CHECK(state.map_head() == HeadId{0, 0, 0, 4});
  CHECK(state.against()->other == HeadId{0, 0, 1, 4});
  CHECK(state.head.order == 0);
}

TEST_CASE("blocks of an order, and what F shows of them") {
  const TokenGrid joint = calls()[0].queries;
  const PlacedSide yxt = placed_side(kYxt, joint);
  CHECK(yxt.blocks == std::vector<int64_t>{2, 10, 18, 26});
  CHECK(yxt.keeps_parts);
  CHECK(block_around(yxt, joint, 11) == IndexRange{10, 18});
  CHECK(block_around(yxt, joint, 1) == IndexRange{0, 2});
  const PlacedSide tiles = placed_side(TokenOrder::parse("tiles:2x2x3"), joint);
  // Tiles of 2×2×3, 2×2×1, 2×1×3 and 2×1×1 cells.
  CHECK(tiles.blocks == std::vector<int64_t>{2, 14, 18, 24, 26});
  CHECK(placed_side(kHilbert, joint).blocks.empty());
  const PlacedSide stored = placed_side({}, joint);
  CHECK(block_around(stored, joint, 20) == IndexRange{14, 26});
  CHECK(block_around(stored, joint, 0) == IndexRange{0, 2});
  const std::vector<MapSource> sources = calls();
  ViewState state =
      after(opened_view(limits()), {action::SetOrder{kYxt}, action::SetRect{{10, 14, 2, 6}}});
  state = after(state, {*command_action(CommandId::frame_block, state, HeadPicker(sources))});
  CHECK(state.rect == MapRect{10, 18, 2, 10});
}

TEST_CASE("places of a map are made once for the same tokens and order") {
  const TokenGrid joint = calls()[0].queries;
  PlacedMaps maps;
  const PlacedMap first = maps.of({kYxt, kHilbert}, joint, joint);
  const PlacedMap again = maps.of({kYxt, kHilbert}, calls()[0].queries, joint);
  CHECK(first.places() == again.places());
  CHECK_FALSE(first.places() == maps.of({kHilbert, kYxt}, joint, joint).places());
  for (int64_t side = 1; side < 60; ++side) {
    maps.of({kYxt, {}}, TokenGrid::video(side * 4, {2, side, 2}, 0, TextPlace::none), joint);
  }
  CHECK(maps.of({{}, kHilbert}, joint, joint).keys->token(2) == 2);
}
