#include "tests/support/catch.h"
#include "viewer/screen/mouse_events.h"

using namespace attnscope;

namespace {

constexpr std::array<bool, 3> kNone{}, kLeft{true, false, false}, kBoth{true, true, false};

}  // namespace

TEST_CASE("clicks that came within one frame are handed out one after the other") {
  MouseEvents mouse;
  mouse.moved(30, 40);
  CHECK(mouse.done());
  for (const bool down : {true, false, true, false}) mouse.button(0, down, 5);
  const MouseEvents::State first = mouse.next();
  CHECK(first.down == kLeft);
  CHECK_FALSE(first.repeated);
  REQUIRE(first.at);
  CHECK(*first.at == std::array<double, 2>{30, 40});
  CHECK(mouse.next().down == kNone);
  const MouseEvents::State second = mouse.next();
  CHECK(second.down == kLeft);
  CHECK(second.repeated);
  CHECK_FALSE(mouse.done());
  CHECK(mouse.next().down == kNone);
  CHECK(mouse.done());
  // A button that is held stays so, wherever the mouse is now.
  mouse.button(0, true, 9);
  CHECK_FALSE(mouse.next().repeated);
  CHECK(mouse.next().down == kLeft);
  CHECK_FALSE(mouse.next().at);
}

TEST_CASE("clicks are near to each other by when they happened, not by frames") {
  MouseEvents mouse;
  const auto click = [&](double seconds) {
    mouse.button(0, true, seconds);
    mouse.button(0, false, seconds + 0.05);
    const bool repeated = mouse.next().repeated;
    mouse.next();
    return repeated;
  };
  CHECK_FALSE(click(0));
  CHECK(click(0.29));
  CHECK_FALSE(click(0.7));
  mouse.button(1, true, 0.75);
  CHECK_FALSE(mouse.next().repeated);
}

TEST_CASE("a drag that came within one frame has its beginning, its way and its end") {
  MouseEvents mouse;
  mouse.moved(10, 10);
  mouse.button(0, true, 1);
  mouse.moved(50, 20);
  mouse.moved(90, 30);
  mouse.button(0, false, 1);
  mouse.moved(95, 35);
  const MouseEvents::State pressed = mouse.next();
  CHECK(pressed.down == kLeft);
  CHECK(*pressed.at == std::array<double, 2>{10, 10});
  const MouseEvents::State dragged = mouse.next();
  CHECK(dragged.down == kLeft);
  CHECK(*dragged.at == std::array<double, 2>{90, 30});
  const MouseEvents::State released = mouse.next();
  CHECK(released.down == kNone);
  CHECK(*released.at == std::array<double, 2>{90, 30});
  CHECK(*mouse.next().at == std::array<double, 2>{95, 35});
  CHECK(mouse.done());
}

TEST_CASE("different buttons may change in one frame") {
  MouseEvents mouse;
  mouse.button(0, true, 1);
  mouse.button(1, true, 1);
  mouse.button(7, true, 1);
  CHECK(mouse.next().down == kBoth);
  CHECK(mouse.done());
}
