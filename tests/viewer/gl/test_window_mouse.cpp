// Needs a display: run by ctest under xvfb-run.
#define GLFW_INCLUDE_NONE
#include <GLFW/glfw3.h>

#include "tests/support/catch.h"
#include "tests/viewer/gl/hidden_app.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

/// What GLFW calls when the mouse is used.
struct MouseCallbacks {
  GLFWwindow* handle = glfwGetCurrentContext();
  GLFWcursorposfun moved = glfwSetCursorPosCallback(handle, nullptr);
  GLFWmousebuttonfun button = glfwSetMouseButtonCallback(handle, nullptr);
  MouseCallbacks() {
    glfwSetCursorPosCallback(handle, moved);
    glfwSetMouseButtonCallback(handle, button);
  }
  void click() const {
    button(handle, GLFW_MOUSE_BUTTON_LEFT, GLFW_PRESS, 0);
    button(handle, GLFW_MOUSE_BUTTON_LEFT, GLFW_RELEASE, 0);
  }
};

}  // namespace

TEST_CASE("a double click between two frames zooms in") {
  HiddenApp hidden(false);
  hidden.open_sample();
  REQUIRE(hidden.wait_for(WaitFor::exact));
  hidden.settle();
  const MouseCallbacks mouse;
  const auto map = hidden.app.labels().find("Matrix/Map");
  REQUIRE(map);
  const MapRect before = hidden.state().rect;
  mouse.moved(mouse.handle, (map->x0 + map->x1) / 2, (map->y0 + map->y1) / 2);
  mouse.click();
  mouse.click();
  hidden.settle();
  const MapRect after = hidden.state().rect;
  CHECK(after.k1 - after.k0 == Approx((before.k1 - before.k0) / 2));
  // Once; and a single click afterwards picks.
  CHECK(hidden.state().query);
}

TEST_CASE("two clicks far apart in time are no double click, however few frames lie between") {
  HiddenApp hidden(false);
  hidden.open_sample();
  REQUIRE(hidden.wait_for(WaitFor::exact));
  const MouseCallbacks mouse;
  const auto map = hidden.app.labels().find("Matrix/Map");
  REQUIRE(map);
  const MapRect before = hidden.state().rect;
  mouse.moved(mouse.handle, (map->x0 + map->x1) / 2, (map->y0 + map->y1) / 2);
  glfwSetTime(100);
  mouse.click();
  glfwSetTime(101);
  mouse.click();
  hidden.settle();
  CHECK(hidden.state().rect == before);
  CHECK(hidden.state().query);
}
