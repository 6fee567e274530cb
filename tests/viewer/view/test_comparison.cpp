
#include "tests/support/catch.h"
#include "tests/support/fake_captures.h"
#include "viewer/commands/command_actions.h"
#include "viewer/view/comparison.h"
#include "viewer/view/view_actions.h"
#include "viewer/view/view_history.h"
#include "viewer/view/wanted_tiles.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

/// The joint calls of three_calls() have one size, the cross call another.
constexpr HeadId kOther{2, 1, 3}, kCross{1, 0, 0};

ViewState compared(const std::vector<Action>& actions) {
  ViewState state =
      apply_action(opened_view(three_calls()), action::SetOther{kOther}, three_calls());
  for (const Action& each : actions) state = apply_action(state, each, three_calls());
  return state;
}

std::string refused(const ViewState& state, const Action& action) {
  return usage_text([&] { apply_action(state, action, three_calls()); });
}

}  // namespace

TEST_CASE("side B is a head of another map of the same size") {
  const ViewState state = compared({});
  REQUIRE(state.other);
  CHECK(state.other->head == kOther);
  CHECK(state.other->lock_zoom);
  CHECK_FALSE(state.against());
  const ViewState plain = opened_view(three_calls());
  CHECK(refused(plain, action::SetOther{kCross}) ==
        "side B: maps of different sizes cannot be compared (A has 1000 queries and 1000 keys, B "
        "1000 and 20)");
  CHECK(has(refused(plain, action::SetOther{{9, 0, 0}}), "no such head: call 9"));
  // Moving A elsewhere keeps B while the sizes agree.
  CHECK(compared({action::SelectHead{{2, 0, 0}}}).other->head == kOther);
  CHECK_FALSE(compared({action::SelectHead{kCross}}).other);
  CHECK_FALSE(compared({action::DropOther{}}).other);
  for (const Action& each :
       {Action{action::SetDifference{Difference::absolute}}, Action{action::SetSplitLine{0.5f}},
        Action{action::SetLock{action::Lock::zoom, false}}, Action{action::ShowRanked{true}}}) {
    CHECK(refused(plain, each) == "there is no side B to compare with");
  }
}

TEST_CASE("tiles are of the difference where one is shown") {
  const ViewState state = compared({action::SetDifference{Difference::signed_difference}});
  const TileId tile = tile_of(state, 1, 0, 0);
  REQUIRE(tile.against);
  CHECK(tile.against->other == kOther);
  CHECK(tile.head == HeadId{});
  CHECK(seen_tiles(state, MapGeometry::of(1000, 1000), 0).front().against == tile.against);
  CHECK_FALSE(tile_of(seen_as_other(state), 1, 0, 0).against);
  CHECK(tile_of(seen_as_other(state), 1, 0, 0).head == kOther);
}

TEST_CASE("a difference has a range and a scale of its own") {
  ViewState state = compared({action::SetRange{{false, 0.25, 4}},
                              action::SetDifference{Difference::signed_difference},
                              action::SetRange{{false, -0.5, 0.125}}});
  CHECK(state.other->range == ColourRange{false, -0.5, 0.5});
  CHECK(state.range == ColourRange{false, 0.25, 4});
  // Another difference has other values.
  state = apply_action(state, action::SetDifference{Difference::absolute}, three_calls());
  CHECK(state.other->range.automatic);
  CHECK(has(refused(state, action::SetRange{{false, -1, 1}}), "log scale"));
  CHECK(difference_scale(ScaleKind::log2, Difference::signed_difference) == ScaleKind::symlog);
  CHECK(difference_scale(ScaleKind::log2, Difference::log_ratio) == ScaleKind::linear);
  CHECK(difference_scale(ScaleKind::log2, Difference::absolute) == ScaleKind::log2);
  CHECK(difference_scale(ScaleKind::linear, Difference::signed_difference) == ScaleKind::linear);
}

TEST_CASE("logits have no ratio") {
  const ViewState ratio = compared({action::SetDifference{Difference::log_ratio}});
  const ViewState logits =
      apply_action(ratio, action::SetProduct{ViewProduct::logits}, three_calls());
  CHECK(logits.other->difference == Difference::signed_difference);
  CHECK(has(refused(logits, action::SetDifference{Difference::log_ratio}), "take product weights"));
  // The key passes over it.
  std::vector<Difference> seen;
  ViewState state = compared({action::SetProduct{ViewProduct::logits}});
  for (int i = 0; i < 3; ++i) {
    state.other->difference = next_difference(state);
    seen.push_back(state.other->difference);
  }
  CHECK(seen == std::vector<Difference>{Difference::signed_difference, Difference::absolute,
                                        Difference::off});
}

TEST_CASE("an export that lacks numbers can be compared by those it has") {
  ViewLimits limits = three_calls();
  limits.calls[2].logits = false;
  ViewState state = opened_view(limits);
  state = apply_action(state, action::SetOther{kOther}, limits);
  CHECK(
      has(usage_text([&] { apply_action(state, action::SetProduct{ViewProduct::logits}, limits); }),
          "no logits of side B"));
  state = apply_action(opened_view(limits), action::SetProduct{ViewProduct::logits}, limits);
  CHECK(has(usage_text([&] { apply_action(state, action::SetOther{kOther}, limits); }),
            "side B: there are no logits of it"));
}

TEST_CASE("blocks that are read are shown side by side, entries are subtracted as well") {
  ViewLimits limits = three_calls();
  limits.computed = false;
  ViewState state = apply_action(opened_view(limits), action::SetOther{kOther}, limits);
  state = apply_action(state, action::SetDifference{Difference::absolute}, limits);
  CHECK(state.against());
  state = apply_action(state, action::ShowRanked{true}, limits);
  CHECK(state.other->ranked);
  // Of blocks the largest numbers do not tell the largest difference.
  limits.calls[2].entries = false;
  ViewState blocks = apply_action(opened_view(limits), action::SetOther{kOther}, limits);
  blocks = apply_action(blocks, action::SetSplitLine{0.5f}, limits);
  CHECK(blocks.other->split);
  const auto refusal = [&](const ViewState& of, const Action& action) {
    return usage_text([&] { apply_action(of, action, limits); });
  };
  CHECK(has(refusal(blocks, action::SetDifference{Difference::absolute}),
            "difference abs: blocks of an export are not subtracted"));
  CHECK(has(refusal(blocks, action::ShowRanked{true}), "b ranked on: blocks of an export"));
  CHECK(has(refusal(state, action::SetOther{kOther}), "side B: blocks of an export"));
  // Rows are compared by weights.
  limits = three_calls();
  limits.computed = false;
  for (CallLimits& call : limits.calls) call.weights = false;
  ViewState logits = opened_view(limits);
  logits = apply_action(logits, action::SetOther{kOther}, limits);
  CHECK(has(refusal(logits, action::ShowRanked{true}), "of which there are none"));
}

TEST_CASE("the ranked rows fill the window, as long as there are any") {
  const ViewState alone = compared({action::Maximise{ViewPane::ranked}});
  CHECK(alone.maximised == ViewPane::ranked);
  CHECK(alone.other->ranked);
  const auto after = [&](const Action& each) { return apply_action(alone, each, three_calls()); };
  CHECK_FALSE(after(action::ShowRanked{false}).maximised);
  CHECK_FALSE(after(action::DropOther{}).maximised);
  CHECK_FALSE(after(action::SelectHead{kCross}).maximised);
  CHECK(refused(opened_view(three_calls()), action::Maximise{ViewPane::ranked}) ==
        "there is no side B to compare with");
}

TEST_CASE("released, B has a part of the map of its own") {
  ViewState state =
      compared({action::SetRect{{0, 100, 0, 100}}, action::SetLock{action::Lock::zoom, false},
                action::SetRect{{500, 600, 500, 600}}});
  CHECK(other_rect(state) == MapRect{0, 100, 0, 100});
  state = apply_action(state, action::SetOtherRect{{10, 60, 20, 70}}, three_calls());
  CHECK(other_rect(state) == MapRect{10, 60, 20, 70});
  CHECK(seen_as_other(state).rect == MapRect{10, 60, 20, 70});
  CHECK(state.rect == MapRect{500, 600, 500, 600});
  state = apply_action(state, action::SetLock{action::Lock::zoom, true}, three_calls());
  CHECK(other_rect(state) == state.rect);
  // Locked, one moves both.
  state = apply_action(state, action::SetOtherRect{{1, 51, 1, 51}}, three_calls());
  CHECK(state.rect == MapRect{1, 51, 1, 51});
}

TEST_CASE("comparing is undone step by step, dragging the line at once") {
  ViewHistory history(opened_view(three_calls()));
  history.apply(action::SetOther{kOther}, three_calls(), 0);
  history.apply(action::SetDifference{Difference::absolute}, three_calls(), 1);
  history.apply(action::SetSplitLine{0.5f}, three_calls(), 2);
  history.apply(action::SetSplitLine{0.6f}, three_calls(), 2.1);
  CHECK(history.undo());
  CHECK_FALSE(history.now().other->split);
  CHECK(history.undo());
  CHECK(history.now().other->difference == Difference::off);
  CHECK(history.undo());
  CHECK_FALSE(history.now().other);
  CHECK(history.redo());
  CHECK(history.now().other->head == kOther);
}

TEST_CASE("heads of a second capture are found among its own calls") {
  const TemporaryFolder folder;
  write_video_capture(folder);
  std::vector<MapSource> calls = map_sources(Capture::open(folder.path()));
  const std::vector<MapSource> first = calls;
  // The second has one step alone, which the first does not have.
  for (size_t i = 0; i < 2; ++i) {
    calls.push_back(first[i]);
    calls.back().step = 20;
  }
  const HeadPicker own(calls, {0, 4}), others(calls, {4, 6});
  CHECK(own.choices({}, HeadAxis::step) == std::vector<std::string>{"0", "10"});
  CHECK(others.choices({4, 0, 0}, HeadAxis::step) == std::vector<std::string>{"20"});
  CHECK(has(usage_text([&] { own.select({}, HeadAxis::step, "20"); }), "it has 0, 10"));
  ViewState state = opened_view(ViewLimits::of(calls));
  state.head = own.select({0, 1, 2}, HeadAxis::layer, "3");
  const HeadId b = first_other(state, own, others);
  CHECK(b == HeadId{5, 1, 2});
  CHECK(others.values(b).layer == 3);
  CHECK(other_text(others.values(b)) == "step 20 layer 3 branch cond head 2");
  CHECK(others.select(b, HeadAxis::layer, "1") == HeadId{4, 1, 2});
  CHECK(sides_text(own.values(state.head), others.values({5, 1, 0}), true) ==
        "S0 L3 H2 \u2212 S20 L3 H0 of B's capture");
}

TEST_CASE("the button of side B begins at another head than A's") {
  const TemporaryFolder folder;
  write_video_capture(folder);
  const HeadPicker picker(map_sources(Capture::open(folder.path())));
  ViewState state = opened_view(ViewLimits::of(picker.calls()));
  const auto suggested = [&](const auto& suits) {
    return picker.values(suggested_other(state, picker, picker, suits));
  };
  const auto any = [](const HeadId&) { return true; };
  state.head = picker.select({0, 1, 2}, HeadAxis::layer, "1");
  const HeadValues a = picker.values(state.head);
  // The next layer, all else as it is.
  CHECK(suggested(any).layer == 3);
  CHECK(suggested(any).step == a.step);
  CHECK(suggested(any).head == a.head);
  CHECK(suggested(any).branch == a.branch);
  // Of the last layer the one before.
  state.head = picker.select(state.head, HeadAxis::layer, "3");
  CHECK(suggested(any).layer == 1);
  // Where no other layer can be compared, another head; where nothing can, A's.
  const auto own_call = [&](const HeadId& head) { return head.call == state.head.call; };
  CHECK(suggested(own_call).layer == 3);
  CHECK(suggested(own_call).head != a.head);
  CHECK(suggested_other(state, picker, picker, [](const HeadId&) { return false; }) == state.head);
  // Side B that is chosen stays.
  state.other = OtherSide{.head = {2, 0, 1}, .rect = state.rect};
  CHECK(suggested_other(state, picker, picker, any) == HeadId{2, 0, 1});
}
