// Needs a display: run by ctest under xvfb-run.
#include "tests/support/catch.h"
#include "tests/viewer/gl/hidden_app.h"

using namespace attnscope;
using namespace attnscope::test;

TEST_CASE("the window survives every size that a window manager gives it") {
  HiddenApp hidden;
  hidden.open_sample();
  REQUIRE(hidden.wait_for(WaitFor::exact));
  for (const std::optional<ViewPane> pane :
       {std::optional<ViewPane>(), std::optional(ViewPane::matrix), std::optional(ViewPane::query),
        std::optional(ViewPane::histogram)}) {
    hidden.app.act(action::Maximise{pane});
    for (const WindowSize size : {WindowSize{1, 1}, WindowSize{1, 480}, WindowSize{640, 1},
                                  WindowSize{17, 33}, kLeastWindow, WindowSize{320, 1200}}) {
      INFO(size.width << " x " << size.height);
      REQUIRE(hidden.force_size(size));
      CHECK(hidden.app.picture().width == size.width);
    }
  }
  hidden.app.act(action::Maximise{});
  for (const char* key : {"?", "Escape", "Ctrl+O", "Escape"}) {
    hidden.app.press(parse_chord(key));
    REQUIRE(hidden.force_size({1, 1}));
    REQUIRE(hidden.force_size({640, 480}));
  }
  hidden.app.try_open("no such file");
  REQUIRE(hidden.force_size({1, 1}));
  hidden.app.press({Key::escape});
  REQUIRE(hidden.force_size({640, 480}));
  CHECK(hidden.wait_for(WaitFor::exact));
}

TEST_CASE("a window without a capture survives every size") {
  HiddenApp hidden;
  for (const WindowSize size : {WindowSize{1, 1}, WindowSize{1, 480}, kLeastWindow}) {
    REQUIRE(hidden.force_size(size));
  }
  REQUIRE(hidden.force_size({640, 480}));
  hidden.window.resize({1, 1});
  const double limit = hidden.app.seconds() + 20;
  while (hidden.window.width() == 640 && hidden.app.seconds() < limit) hidden.app.step(0.01);
  CHECK(hidden.window.width() == kLeastWindow.width);
  CHECK(hidden.window.height() == kLeastWindow.height);
}

TEST_CASE("in a small window the toolbar is one line and a menu, and the map has room") {
  HiddenApp hidden;
  hidden.open_sample();
  REQUIRE(hidden.wait_for(WaitFor::exact));
  const auto label = [&](const char* name) { return hidden.app.labels().find(name); };
  CHECK_FALSE(label("Toolbar/Controls"));
  REQUIRE(hidden.force_size(kLeastWindow));
  REQUIRE(label("Toolbar/Controls"));
  CHECK_FALSE(label("Toolbar/Logit"));
  REQUIRE(label("Matrix/Map"));
  CHECK(label("Matrix/Map")->y0 < 120);
  CHECK(label("Matrix/Map")->height() >= 64);

  hidden.click("Toolbar/Controls");
  for (const char* name : {"Toolbar/Step", "Toolbar/Head", "Toolbar/Look", "Toolbar/B",
                           "Toolbar/Theme", "Toolbar/Help"}) {
    INFO(name);
    REQUIRE(label(name));
    CHECK(label(name)->x1 <= 320);
    CHECK(label(name)->y1 <= 240);
  }
  hidden.click("Toolbar/Logit");
  CHECK(hidden.state().product == ViewProduct::logits);
  // It stays open, and its lists open over it; Esc closes what is in front.
  hidden.click("Toolbar/Head");
  REQUIRE(label("Head/2"));
  hidden.press("Escape");
  CHECK_FALSE(label("Head/2"));
  REQUIRE(label("Toolbar/Logit"));
  hidden.click("Toolbar/Head");
  hidden.click("Head/2");
  CHECK(hidden.state().head.head == 2);
  hidden.press("Escape");
  CHECK_FALSE(label("Toolbar/Logit"));
  // Beside it, a click closes it and does nothing else.
  hidden.click("Toolbar/Controls");
  const ViewState before = hidden.state();
  hidden.app.mouse().click(60, 230);
  hidden.settle();
  CHECK_FALSE(label("Toolbar/Logit"));
  CHECK(hidden.state() == before);
  hidden.click("Toolbar/Controls");
  hidden.click("Toolbar/Help");
  CHECK(label("Help/Panel"));
  hidden.press("Escape");
  CHECK_FALSE(label("Toolbar/Logit"));
  REQUIRE(hidden.force_size({640, 480}));
  CHECK(label("Toolbar/Logit"));
}
