// Which steps the time line has, what a number of a head is over them, and how they play.
#include <cmath>
#include <map>

#include "tests/support/catch.h"
#include "tests/support/fake_captures.h"
#include "viewer/view/heads/timeline.h"
#include "viewer/view/view_actions.h"
#include "viewer/view/view_history.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

MapSource call(int64_t step, int64_t layer, std::vector<std::string> branches,
               std::string slot = "attn1", std::vector<int64_t> heads = {0, 1}) {
  MapSource source;
  source.step = step;
  source.layer = layer;
  source.place = {"blocks." + std::to_string(layer), std::move(slot)};
  source.branches = std::move(branches);
  for (size_t i = 0; i < source.branches.size(); ++i) {
    source.batch.push_back(static_cast<int64_t>(i));
  }
  source.heads = std::move(heads);
  return source;
}

/// "cond: # = . |", a sign a point: the present one, the same head, another call, nothing.
std::string shape(const Timeline& timeline) {
  std::string text;
  for (size_t row = 0; row < timeline.rows.size(); ++row) {
    text += timeline.rows[row].branch + ":";
    for (size_t i = 0; i < timeline.points.size(); ++i) {
      const TimelineTick& tick = timeline.rows[row].ticks[i];
      const bool here = row == timeline.row && i == timeline.point;
      text += here ? " #" : !tick.head ? " ." : tick.same ? " =" : " -";
    }
    text += "\n";
  }
  return text;
}

std::shared_ptr<const HeadSketch> sketch(double entropy, bool exact = false) {
  auto made = std::make_shared<HeadSketch>();
  made->numbers.assign(head_fields().size(), std::nan(""));
  made->numbers[static_cast<size_t>(find_head_field("entropy") - head_fields().data())] = entropy;
  made->exact = exact;
  return made;
}

TimelineLook entropy_over(CurveAxis axis) {
  TimelineLook look;
  look.metric = "entropy";
  look.over = axis;
  return look;
}

}  // namespace

TEST_CASE("the time line has every step of every branch, marked where the present call has one") {
  const std::vector<MapSource> calls{call(10, 1, {"uncond", "cond"}),
                                     call(0, 1, {"uncond", "cond"}), call(20, 3, {"cond"}),
                                     call(30, 1, {"cond"}), call(0, 3, {"cond"}, "attn2")};
  const Timeline timeline = Timeline::of(calls, {0, 1, 1});
  REQUIRE(timeline.points.size() == 4);
  CHECK(timeline.points[2] == TimelinePoint{kNoChunk, 20});
  CHECK_FALSE(timeline.has_chunks());
  CHECK(timeline.text(2) == "step 20");
  CHECK(shape(timeline) == "uncond: = = . .\ncond: = # - =\n");
  CHECK(timeline.here().head == HeadId{0, 1, 1});
  CHECK(timeline.newest() == HeadId{3, 0, 1});
  CHECK(Timeline::of(calls, {2, 0, 0}).newest() == HeadId{2, 0, 0});
  // A click on step 0 goes to the same slot, not to attn2; on step 20 to what there is.
  CHECK(timeline.rows[1].ticks[0].head == HeadId{1, 1, 1});
  CHECK(timeline.rows[1].ticks[2].head == HeadId{2, 0, 1});
  CHECK(timeline.rows[0].ticks[1].head == HeadId{0, 0, 1});
  // Where the call has not the head, another one of it.
  const std::vector<MapSource> fewer{call(0, 1, {"all"}), call(1, 1, {"all"}, "attn1", {0})};
  CHECK(shape(Timeline::of(fewer, {0, 0, 1})) == "all: # -\n");
  CHECK(shape(Timeline::of(fewer, {0, 0, 0})) == "all: # =\n");
}

TEST_CASE("the steps of a stream stand chunk by chunk") {
  std::vector<MapSource> calls{call(5, 0, {"all"}), call(0, 0, {"all"}), call(0, 0, {"all"})};
  calls[0].place.chunk = 0;
  calls[1].place.chunk = 1;
  calls[2].place.chunk = 0;
  const Timeline timeline = Timeline::of(calls, {1, 0, 0});
  CHECK(timeline.has_chunks());
  CHECK(timeline.points == std::vector<TimelinePoint>{{0, 0}, {0, 5}, {1, 0}});
  CHECK(timeline.text(timeline.point) == "chunk 1 \u00b7 step 0");
  CHECK(shape(timeline) == "all: = = #\n");
}

TEST_CASE("a curve has gaps where nothing is recorded, and numbers that come later") {
  const std::vector<MapSource> calls{call(0, 0, {"all"}), call(1, 0, {"all"}),
                                     call(2, 1, {"all"}), call(3, 0, {"all"}),
                                     call(0, 2, {"all"}), call(0, 5, {"all"}, "attn1", {0})};
  std::map<HeadId, std::shared_ptr<const HeadSketch>> known{{{0, 0, 1}, sketch(2)},
                                                            {{3, 0, 1}, sketch(5, true)}};
  const FindSketch find = [&](const HeadId& id) { return known[id]; };
  const HeadId from{1, 0, 1};
  const Timeline timeline = Timeline::of(calls, from);
  const TimelineLook steps = entropy_over(CurveAxis::steps);
  const auto curve = [&] { return HeadCurve::of(calls, timeline, from, steps, find); };
  const HeadCurve over = curve();
  REQUIRE(over.points.size() == 4);
  CHECK(over.here == 1);
  CHECK(over.points[0].number == 2);
  CHECK(over.points[0].known);
  CHECK_FALSE(over.points[0].exact);
  CHECK_FALSE(over.points[1].known);
  CHECK(std::isnan(over.points[1].number));
  // Step 2 has another layer alone.
  CHECK_FALSE(over.points[2].head);
  CHECK(over.points[3].exact);
  CHECK((over.heads == 3 && over.known == 2 && over.exact == 1));
  CHECK(over.range == std::pair(2.0, 5.0));
  // The nearest first.
  CHECK(over.wanted() == std::vector<HeadId>{{1, 0, 1}, {0, 0, 1}, {3, 0, 1}});
  known[from] = sketch(std::nan(""));
  CHECK(curve().known == 3);
  CHECK(curve().range == std::pair(2.0, 5.0));

  // Over the layers of step 0; layer 5 has no head 1.
  const HeadId first{0, 0, 1};
  const HeadCurve layers = HeadCurve::of(calls, Timeline::of(calls, first), first,
                                         entropy_over(CurveAxis::layers), find);
  REQUIRE(layers.points.size() == 3);
  CHECK(layers.points[1].name == "2");
  CHECK(layers.points[1].head == HeadId{4, 0, 1});
  CHECK_FALSE(layers.points[2].head);
  CHECK(layers.here == 0);
}

TEST_CASE("a curve asks for so many heads at most") {
  std::vector<MapSource> calls;
  for (int64_t step = 0; step < 700; ++step) calls.push_back(call(step, 0, {"all"}));
  const HeadId from{350, 0, 0};
  const auto curve =
      HeadCurve::of(calls, Timeline::of(calls, from), from, entropy_over(CurveAxis::steps),
                    [](const HeadId&) { return nullptr; });
  const auto wanted = curve.wanted();
  REQUIRE(wanted.size() == kMostCurveHeads);
  CHECK(wanted.front() == from);
  for (const HeadId& id : wanted) CHECK(std::abs(id.call - 350) <= 256);
}

TEST_CASE("playing goes on when its time has come and the picture is there") {
  const std::vector<MapSource> calls{call(0, 1, {"all"}), call(1, 1, {"all"}), call(2, 3, {"all"}),
                                     call(3, 1, {"all"})};
  const auto at = [&](int64_t c) { return Timeline::of(calls, {c, 0, 0}); };
  TimelineLook look;
  look.speed = 4;
  TimelinePlayer player;
  CHECK_FALSE(player.next(at(0), look, true, 100));
  player.start(100, look.speed);
  CHECK(player.wait(100) == Approx(0.25));
  CHECK_FALSE(player.next(at(0), look, true, 100.2));
  // Late pictures make it late, and skip nothing.
  CHECK_FALSE(player.next(at(0), look, false, 103));
  CHECK(player.next(at(0), look, true, 103) == HeadId{1, 0, 0});
  CHECK(player.wait(103) == Approx(0.25));
  CHECK_FALSE(player.next(at(1), look, true, 103.1));
  // Step 2 has no such call; after the last comes the first.
  CHECK(player.next(at(1), look, true, 104) == HeadId{3, 0, 0});
  CHECK(player.next(at(3), look, true, 105) == HeadId{0, 0, 0});
  look.loop = false;
  CHECK_FALSE(player.next(at(3), look, true, 106));
  CHECK_FALSE(player.playing());
  // With one step there is nothing to play.
  look.loop = true;
  const std::vector<MapSource> one{call(0, 1, {"all"})};
  player.start(0, 1);
  CHECK_FALSE(player.next(Timeline::of(one, {}), look, true, 5));
  CHECK_FALSE(player.playing());
}

TEST_CASE(
    "a time line's look is checked and kept, and steps that are played are one step of undo") {
  const ViewLimits limits = three_calls();
  TimelineLook look;
  look.metric = "entropie";
  CHECK(
      has(usage_text([&] { apply_action(opened_view(limits), action::SetTimeline{look}, limits); }),
          "timeline entropie: no such number, did you mean entropy?"));
  look.metric = "entropy";
  look.speed = 1000;
  CHECK(
      has(usage_text([&] { apply_action(opened_view(limits), action::SetTimeline{look}, limits); }),
          "timeline speed 1000: expected 0.1 to 30"));

  ViewHistory history(opened_view(limits));
  history.apply(action::Scrub{{2, 0, 0}}, limits, 1);
  history.apply(action::Scrub{{0, 0, 1}}, limits, 5);
  history.apply(action::Scrub{{2, 0, 1}}, limits, 9);
  CHECK(history.now().head == HeadId{2, 0, 1});
  REQUIRE(history.undo());
  CHECK(history.now().head == HeadId{});
  CHECK_FALSE(history.can_undo());
}

TEST_CASE("the time line says where no step was recorded") {
  std::vector<MapSource> calls{call(0, 0, {"all"})};
  calls[0].place.unrecorded = {true, true, true};
  CHECK(Timeline::of(calls, {}).text(0) == "step not recorded");
  const auto none = [](const HeadId&) { return nullptr; };
  for (const CurveAxis axis : {CurveAxis::steps, CurveAxis::layers}) {
    const HeadCurve curve =
        HeadCurve::of(calls, Timeline::of(calls, {}), {}, entropy_over(axis), none);
    REQUIRE(curve.points.size() == 1);
    CHECK(curve.points[0].name == "not recorded");
  }
  // One that was recorded makes the others count as 0.
  calls.push_back(call(3, 0, {"all"}));
  CHECK(Timeline::of(calls, {}).text(0) == "step 0");
}
