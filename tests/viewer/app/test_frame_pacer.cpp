#include "tests/support/catch.h"
#include "viewer/app/frame_pacer.h"

using attnscope::FramePacer;

TEST_CASE("without news and work no frame is ever due") {
  FramePacer pacer;
  CHECK_FALSE(pacer.due(1e9, false, false));
  CHECK(pacer.wait(5, false, false) < 0);
  pacer.drew(5, 5.01, false);
  CHECK_FALSE(pacer.due(1e9, false, false));
}

TEST_CASE("news are drawn soon, progress now and then, both seldom where drawing is slow") {
  FramePacer pacer;
  CHECK(pacer.due(0, true, false));
  pacer.drew(10, 10.001, false);
  CHECK_FALSE(pacer.due(10.05, true, true));
  CHECK(pacer.wait(10.05, true, true) == Approx(0.051));
  CHECK(pacer.due(10.102, true, false));
  CHECK_FALSE(pacer.due(10.102, false, true));
  CHECK(pacer.due(10.502, false, true));
  CHECK(pacer.wait(10.6, false, true) == 0);
  // A frame of 60 ms: less than a seventh of the time for news, a twentieth for progress.
  pacer.drew(20, 20.06, false);
  CHECK_FALSE(pacer.due(20.4, true, true));
  CHECK(pacer.due(20.43, true, false));
  CHECK_FALSE(pacer.due(21.2, false, true));
  CHECK(pacer.due(21.27, false, true));
}

TEST_CASE("somebody at the mouse sees news at once") {
  FramePacer pacer;
  pacer.drew(10, 10.002, true);
  CHECK_FALSE(pacer.due(10.01, true, false));
  CHECK(pacer.due(10.019, true, false));
  pacer.drew(20, 20.06, true);
  CHECK(pacer.due(20.121, true, false));
}
