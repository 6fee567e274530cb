// Needs a display: run by ctest under xvfb-run.
#define GLFW_INCLUDE_NONE
#include <GLFW/glfw3.h>

#include "tests/support/catch.h"
#include "tests/viewer/gl/hidden_app.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

/// What a window manager does that knows of no limits; under the virtual screen there is none.
void force_size(HiddenApp& hidden, WindowSize size) {
  glfwSetWindowSize(glfwGetCurrentContext(), size.width, size.height);
  const double limit = hidden.app.seconds() + 20;
  const auto there = [&] {
    return hidden.window.width() == size.width && hidden.window.height() == size.height;
  };
  while (!there() && hidden.app.seconds() < limit) hidden.app.step(0.01);
  REQUIRE(there());
  hidden.settle();
}

}  // namespace

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
      force_size(hidden, size);
      CHECK(hidden.app.picture().width == size.width);
    }
  }
  hidden.app.act(action::Maximise{});
  for (const char* key : {"?", "Escape", "Ctrl+O", "Escape"}) {
    hidden.app.press(parse_chord(key));
    force_size(hidden, {1, 1});
    force_size(hidden, {640, 480});
  }
  hidden.app.try_open("no such file");
  force_size(hidden, {1, 1});
  hidden.app.press({Key::escape});
  force_size(hidden, {640, 480});
  CHECK(hidden.wait_for(WaitFor::exact));
}

TEST_CASE("a window without a capture survives every size") {
  HiddenApp hidden;
  for (const WindowSize size : {WindowSize{1, 1}, WindowSize{1, 480}, kLeastWindow}) {
    force_size(hidden, size);
  }
  force_size(hidden, {640, 480});
  hidden.window.resize({1, 1});
  const double limit = hidden.app.seconds() + 20;
  while (hidden.window.width() == 640 && hidden.app.seconds() < limit) hidden.app.step(0.01);
  CHECK(hidden.window.width() == kLeastWindow.width);
  CHECK(hidden.window.height() == kLeastWindow.height);
}
