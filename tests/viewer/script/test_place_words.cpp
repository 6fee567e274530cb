#include "tests/support/catch.h"
#include "tests/support/fake_captures.h"
#include "viewer/script/place_words.h"
#include "viewer/view/maps/map_source.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

/// Two steps of layers 3 and 12 of two heads: four words of text before two frames of 2x3.
std::vector<MapSource> placed_calls(bool several_steps) {
  std::vector<MapSource> calls;
  for (const int64_t step : {0, 10}) {
    for (const int64_t layer : {3, 12}) {
      MapSource call;
      call.name = "call";
      call.step = step;
      call.layer = layer;
      call.branches = {"cond"};
      call.batch = {0};
      call.heads = {0, 1};
      call.queries = call.keys = TokenGrid::video(16, {2, 2, 3}, 4, TextPlace::start);
      call.tokens = {{"a", "red", "circle", "[PAD]"}};
      calls.push_back(call);
    }
    if (!several_steps) break;
  }
  return calls;
}

struct Placed {
  explicit Placed(bool several_steps = false) : calls(placed_calls(several_steps)) {}

  std::vector<MapSource> calls;
  HeadPicker picker{calls};
  ViewLimits limits = ViewLimits::of(calls);
  ViewState state = opened_view(limits);

  SettingPlace place() const { return {.state = state, .picker = &picker, .others = &picker}; }
  PaletteContext context() const {
    return {&picker, state.head, TokenNames::of(calls[0], 0, state.reverse)};
  }
  std::string text() const { return place_text(place()); }
  Placed& go(std::string_view text) {
    state = state_at(text, place(), context(), limits);
    return *this;
  }
  std::string refused(std::string_view text) {
    return usage_text([&] { go(text); });
  }
};

}  // namespace

TEST_CASE("a place is told by its head, its token and its part of the map") {
  Placed at;
  CHECK(at.text() == "L3 H0");
  at.go("12.1");
  CHECK(at.text() == "L12 H1");
  at.go("1,0,2");
  CHECK(at.text() == "L12 H1 \u00b7 q 1,0,2");
  at.go("4-12");
  CHECK(at.text() == "L12 H1 \u00b7 q 1,0,2 \u00b7 4\u201312");
  at.go("0-8 x 4-12; q text 2");
  CHECK(at.text() == "L12 H1 \u00b7 q text 2 \u00b7 0\u20138 \u00d7 4\u201312");
  at.go("k 0,1,1; zoom 0 16 0 16");
  CHECK(at.state.reverse);
  CHECK(at.text() == "L12 H1 \u00b7 k 0,1,1");
  at.go("q none; L3 H1");
  CHECK_FALSE(at.state.query);
  CHECK(at.text() == "L3 H1");
  at.go("q tokens 4,5,9");
  CHECK(at.text() == "L3 H1 \u00b7 q tokens 4-5,9");
  Placed steps(true);
  CHECK(steps.text() == "step 0 \u00b7 L3 H0");
  steps.go("step 10 ; layer 12");
  CHECK(steps.text() == "step 10 \u00b7 L12 H0");
}

TEST_CASE("a place that is told leads there again") {
  Placed at(true);
  at.go("step 10; L12 H1; q 1,1,0; 3-9 x 5-14");
  Placed other(true);
  other.go(at.text());
  CHECK(other.state == at.state);
}

TEST_CASE("what is no place is refused with what was expected, and nothing changes") {
  Placed at;
  const ViewState before = at.state;
  CHECK(has(at.refused("L9 H0"), "layer 9"));
  CHECK(has(at.refused("q 7,0,0"), "outside the grid of call (valid 0 0 0 to 1 1 2)"));
  CHECK(has(at.refused("somewhere"), "somewhere: expected a head (L2 H0), a token (q 3,5,6"));
  CHECK(has(at.refused("L12 H1; 9-3"), "Q0 < Q1"));
  for (const char* act : {"open x", "shot x.png", "key W", "click Toolbar/Help", "quit",
                          "b layer 3", "mask causal", "wait idle"}) {
    INFO(act);
    CHECK(has(at.refused(act), "a place has words that change what is looked at alone"));
  }
  CHECK(has(at.refused("layer x"), "layer"));
  CHECK(at.state == before);
}
