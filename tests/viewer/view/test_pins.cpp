#include "tests/support/catch.h"
#include "tests/support/fake_captures.h"
#include "viewer/view/pins.h"
#include "viewer/view/view_history.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

ViewLimits two_sizes() {
  CallLimits call;
  call.rows = 100;
  call.cols = 80;
  call.batch = 1;
  call.heads = 2;
  ViewLimits limits;
  limits.calls = {call, call};
  limits.calls[1].cols = 40;
  return limits;
}

}  // namespace

TEST_CASE("pins have numbers, and the lowest free one is found") {
  Pins pins;
  CHECK(pins.none());
  CHECK(pins.text() == "none");
  CHECK(pins.first_free() == 1);
  for (int64_t i = 1; i <= kPins; ++i) {
    if (i != 3) pins.set(i, Pin{i, 10 * i});
  }
  CHECK(pins.first_free() == 3);
  CHECK(pins.number_of({5, 50}) == 5);
  CHECK_FALSE(pins.number_of({50, 5}));
  pins.set(3, Pin{0, 0});
  CHECK_FALSE(pins.first_free());
  CHECK_FALSE(pins.at(9));
  CHECK_FALSE(pins.at(0));
  Pins two;
  two.set(8, Pin{1, 2});
  two.set(2, Pin{30, 4});
  CHECK(two.text() == "2:30,4 8:1,2");
  two.set(8, {});
  CHECK(two.text() == "2:30,4");
}

TEST_CASE("a pin is kept, gone to, let go and undone; its token becomes the query") {
  const ViewLimits limits = two_sizes();
  ViewHistory history(opened_view(limits));
  const auto act = [&](const Action& action) { history.apply(action, limits, 0); };
  act(action::SetPin{4, Pin{60, 30}});
  act(action::SetRect{{0, 20, 0, 16}});
  act(action::GoToPin{4});
  // In the middle of as large a part of the map.
  CHECK(history.now().rect == MapRect{50.5, 70.5, 22.5, 38.5});
  CHECK(history.now().query == ChosenQuery{{60}});
  act(action::SetReverse{true});
  act(action::GoToPin{4});
  CHECK(history.now().query == ChosenQuery{{30}});
  REQUIRE(history.undo());
  CHECK(history.now().query == ChosenQuery{{60}});
  // At the map's edge the view stays within the map; all of it stays where it is.
  act(action::SetPin{1, Pin{99, 0}});
  act(action::GoToPin{1});
  CHECK(history.now().rect == MapRect{80, 100, 0, 16});
  act(action::Fit{});
  const MapRect all = history.now().rect;
  act(action::GoToPin{4});
  CHECK(history.now().rect == all);
  act(action::SetPin{1, {}});
  CHECK_FALSE(history.now().pins.at(1));
  // Another head of the size keeps them, another size does not.
  act(action::SelectHead{{0, 0, 1}});
  CHECK(history.now().pins.at(4) == Pin{60, 30});
  act(action::SelectHead{{1, 0, 0}});
  CHECK(history.now().pins.none());
}

TEST_CASE("pins that cannot be are refused in one line, also those of a session") {
  const ViewLimits limits = two_sizes();
  const ViewState state = opened_view(limits);
  const auto refused = [&](const Action& action) {
    return usage_text([&] { apply_action(state, action, limits); });
  };
  CHECK(refused(action::SetPin{9, Pin{0, 0}}) == "pin 9: pins have numbers from 1 to 8");
  CHECK(refused(action::SetPin{0, Pin{0, 0}}) == "pin 0: pins have numbers from 1 to 8");
  CHECK(refused(action::SetPin{1, Pin{100, 0}}) ==
        "pin 1: query 100: outside the map (valid 0 to 99)");
  CHECK(refused(action::SetPin{1, Pin{0, -1}}) == "pin 1: key -1: outside the map (valid 0 to 79)");
  CHECK(refused(action::GoToPin{2}) == "pin 2: there is no pin 2");
  CHECK(refused(action::SetPin{2, {}}) == "unpin 2: there is no pin 2");
}
