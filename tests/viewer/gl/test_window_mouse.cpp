// Needs a display: run by ctest under xvfb-run.
#include "tests/support/catch.h"
#include "tests/viewer/gl/hidden_app.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

/// The functions that GLFW calls when the mouse is used.
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

TEST_CASE("clicks beside a dialog are none on what stands behind it") {
  HiddenApp hidden;
  hidden.open_sample();
  REQUIRE(hidden.force_size({1200, 760}));
  REQUIRE(hidden.wait_for(WaitFor::exact));
  hidden.settle();
  std::vector<ScreenRect> places;
  for (const char* label : {"Toolbar/Logit", "Toolbar/Look", "Toolbar/Head", "Toolbar/Theme"}) {
    const auto rect = hidden.app.labels().find(label);
    REQUIRE(rect);
    places.push_back(*rect);
  }
  // The map's lower left corner, and the entry under it.
  const ScreenRect map = *hidden.app.labels().find("Matrix/Map");
  places.push_back({map.x0, map.y1 - 8, map.x0 + 8, map.y1});
  const ViewState before = hidden.state();
  const auto open = [&](const std::string& dialog) {
    if (dialog == "Error/Close") {
      hidden.app.try_open("no such file");
      hidden.settle();
    } else {
      hidden.press(dialog == "Browser/Cancel" ? "Ctrl+O" : "?");
    }
    INFO(dialog);
    REQUIRE(hidden.app.labels().find(dialog));
    CHECK_FALSE(hidden.app.labels().find("Toolbar/Logit"));
  };
  for (const std::string dialog : {"Error/Close", "Browser/Cancel", "Help/Panel"}) {
    for (const ScreenRect& place : places) {
      INFO(dialog << " " << place.x0 << ", " << place.y0);
      open(dialog);
      hidden.click(place);
      CHECK(hidden.state() == before);
      CHECK_FALSE(hidden.app.labels().find("Head/1"));
      // Any click closes the help.
      CHECK(hidden.app.labels().find(dialog).has_value() == (dialog != "Help/Panel"));
      hidden.press("Escape");
      CHECK_FALSE(hidden.app.labels().find(dialog));
    }
  }
  // A failure over the browser: it is closed first, and the browser is there again.
  hidden.press("Ctrl+O");
  const auto cancel = hidden.app.labels().find("Browser/Cancel");
  REQUIRE(cancel);
  hidden.app.try_open("no such file");
  hidden.settle();
  hidden.click(*cancel);
  REQUIRE(hidden.app.failed());
  hidden.click("Error/Close");
  CHECK(hidden.app.labels().find("Browser/Cancel"));
  hidden.click("Browser/Cancel");
  hidden.click("Toolbar/Logit");
  CHECK(hidden.state().product == ViewProduct::logits);
}

TEST_CASE("a click beside an open list closes it and does nothing else") {
  HiddenApp hidden;
  hidden.open_sample();
  REQUIRE(hidden.wait_for(WaitFor::exact));
  hidden.settle();
  const ViewState before = hidden.state();
  for (const char* beside : {"Matrix/Map", "Toolbar/Logit", "Query/t5", "Matrix/Overview"}) {
    INFO(beside);
    hidden.click("Toolbar/Head");
    REQUIRE(hidden.app.labels().find("Head/1"));
    hidden.click(beside);
    CHECK_FALSE(hidden.app.labels().find("Head/1"));
    CHECK(hidden.state() == before);
  }
}

TEST_CASE("the second click on what closes by the first one does not reach the panels") {
  HiddenApp hidden(false);
  hidden.open_sample();
  REQUIRE(hidden.wait_for(WaitFor::exact));
  hidden.settle();
  const MouseCallbacks mouse;
  const ViewState before = hidden.state();
  hidden.press("Ctrl+O");
  const auto entry = hidden.app.labels().find("Browser/moving-shapes");
  REQUIRE(entry);
  mouse.moved(mouse.handle, (entry->x0 + entry->x1) / 2, (entry->y0 + entry->y1) / 2);
  mouse.click();
  mouse.click();
  hidden.settle();
  REQUIRE_FALSE(hidden.app.labels().find("Browser/moving-shapes"));
  REQUIRE(hidden.wait_for(WaitFor::exact));
  CHECK(hidden.state() == before);
  // A later click is one again.
  const auto logit = hidden.app.labels().find("Toolbar/Logit");
  REQUIRE(logit);
  mouse.moved(mouse.handle, (logit->x0 + logit->x1) / 2, (logit->y0 + logit->y1) / 2);
  mouse.click();
  hidden.settle();
  CHECK(hidden.state().product == ViewProduct::logits);
}

TEST_CASE("heads fill their pane; small cells have classes, whose legend filters by a click") {
  HiddenApp hidden;
  hidden.open_sample();
  hidden.press("T");
  REQUIRE(hidden.wait_for(WaitFor::atlas));
  hidden.settle();
  const auto cell = hidden.app.labels().find("Atlas/L0/H0");
  REQUIRE(cell);
  CHECK(cell->width() > 20);
  CHECK_FALSE(hidden.app.labels().find("Atlas/Class temporal"));
  // Ctrl and the wheel make them small.
  const auto wheel = [&](int notches) {
    ImGui::GetIO().KeyCtrl = true;
    hidden.app.mouse().wheel((cell->x0 + cell->x1) / 2, (cell->y0 + cell->y1) / 2, notches);
    hidden.settle();
    ImGui::GetIO().KeyCtrl = false;
    hidden.settle();
  };
  wheel(-12);
  const auto small = hidden.app.labels().find("Atlas/L0/H0");
  REQUIRE(small);
  CHECK(small->width() < 20);
  int classes = 0;
  for (const char* const which : {"sink", "text", "temporal", "spatial", "local", "global"}) {
    const std::string label = std::string("Atlas/Class ") + which;
    if (!hidden.app.labels().find(label)) continue;
    ++classes;
    INFO(which);
    hidden.click(label);
    CHECK(hidden.state().atlas.filter == which);
    hidden.settle();
    hidden.click(label);
    CHECK(hidden.state().atlas.filter.empty());
  }
  CHECK(classes >= 2);
}

TEST_CASE("a head of the atlas is seen while the mouse is on it, and stays after a click") {
  HiddenApp hidden;
  hidden.open_sample();
  const auto move_to = [&](const ScreenRect& rect) {
    hidden.app.mouse().hover((rect.x0 + rect.x1) / 2, (rect.y0 + rect.y1) / 2);
    hidden.settle();
  };
  hidden.settle();
  CHECK_FALSE(hidden.app.labels().find("Atlas/L2/H1"));
  hidden.press("T");
  REQUIRE(hidden.wait_for(WaitFor::atlas));
  hidden.settle();
  const auto cell = hidden.app.labels().find("Atlas/L2/H1");
  const auto map = hidden.app.labels().find("Matrix/Map");
  REQUIRE(cell);
  REQUIRE(map);
  const HeadId before = hidden.state().head;
  const auto seen = [&] { return hidden.app.document()->shown().head; };
  move_to(*cell);
  CHECK(hidden.app.document()->picker.values(seen()).layer == 2);
  CHECK(hidden.app.document()->picker.values(seen()).head == 1);
  CHECK(hidden.state().head == before);
  move_to(*map);
  CHECK(seen() == before);
  hidden.click(*cell);
  CHECK(hidden.app.document()->picker.values(hidden.state().head).layer == 2);
  CHECK(seen() == hidden.state().head);
  // One step of undo brings the head back, and hides nothing.
  hidden.press("Ctrl+Z");
  CHECK(hidden.state().head == before);
  CHECK(hidden.app.labels().find("Atlas/L2/H1"));
  hidden.press("T");
  CHECK_FALSE(hidden.app.labels().find("Atlas/L2/H1"));
}
