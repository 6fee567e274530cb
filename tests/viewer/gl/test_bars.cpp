// Toolbar, status line and what they open. Needs a display: run by ctest under xvfb-run.
#include <algorithm>
#include <cstdlib>
#include <regex>

#include "tests/support/catch.h"
#include "tests/viewer/gl/hidden_app.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

struct BarredApp : HiddenApp {
  explicit BarredApp(const ViewerApp::Settings& usual = {})
      : HiddenApp(true, hidden_window(), usual) {
    open_sample();
    REQUIRE(force_size({1280, 800}));
    REQUIRE(wait_for(WaitFor::exact));
    settle();
  }
  ScreenRect label(const std::string& name) const {
    INFO(name);
    const auto rect = app.labels().find(name);
    REQUIRE(rect);
    return *rect;
  }
  bool says(const std::string& part) const {
    const auto& texts = app.labels().texts();
    return std::any_of(texts.begin(), texts.end(), [&](const WrittenText& text) {
      return text.whole.find(part) != std::string::npos;
    });
  }
};

}  // namespace

TEST_CASE("side B has a line of its own, its lists under A's") {
  BarredApp hidden;
  const float line = hidden.label("Toolbar/Layer").y0;
  for (const char* name : {"Toolbar/Menu", "Toolbar/Logit", "Toolbar/Look", "Toolbar/Place",
                           "Toolbar/Search", "Toolbar/Open", "Toolbar/Help"}) {
    CHECK(std::abs(hidden.label(name).y0 - line) <= 2);
  }
  hidden.click("Toolbar/B");
  CHECK(hidden.label("Toolbar/Layer").y0 == line);
  for (const char* axis : {"Step", "Layer", "Head"}) {
    INFO(axis);
    const ScreenRect a = hidden.label(std::string("Toolbar/") + axis);
    const ScreenRect b = hidden.label(std::string("B/") + axis);
    CHECK(a.x0 == b.x0);
    CHECK(a.width() == b.width());
    CHECK(b.y0 > a.y1);
    CHECK(b.y0 == hidden.label("B/Layer").y0);
  }
  CHECK(hidden.label("Difference/signed").y0 > line + 20);
  hidden.click("B/Show");
  CHECK(hidden.app.document()->shows_other);
  hidden.click("B/Show");
  CHECK_FALSE(hidden.app.document()->shows_other);
  CHECK_FALSE(hidden.says("locked"));
  hidden.click("B/Split");
  CHECK(hidden.says("locked"));
  hidden.click("B/Zoom");
  CHECK_FALSE(hidden.state().other->lock_zoom);
}

TEST_CASE("the menu does what it names, and goes to pins and lets them go") {
  BarredApp hidden;
  hidden.app.act(action::SetPin{3, Pin{700, 200}});
  hidden.settle();
  hidden.click("Toolbar/Menu");
  hidden.click("View/Pin 3");
  REQUIRE(hidden.state().query);
  CHECK(hidden.state().query->tokens == std::vector<int64_t>{700});
  hidden.click("Toolbar/Menu");
  hidden.click("View/Unpin 3");
  CHECK_FALSE(hidden.state().pins.at(3));
  hidden.press("Escape");
  CHECK_FALSE(hidden.app.labels().find("View/Undo"));
  hidden.click("Toolbar/Menu");
  hidden.click("View/Undo");
  CHECK(hidden.state().pins.at(3));
  hidden.click("Toolbar/Search");
  CHECK(hidden.app.labels().find("Palette/Field"));
}

TEST_CASE("the status line tells the program's memory and its limit") {
  ViewerApp::Settings settings;
  settings.memory_limit = int64_t{2} << 30;
  BarredApp limited(settings);
  const auto& texts = limited.app.labels().texts();
  const std::regex memory("queue 0   memory (\\d+\\.\\d) of 2 GiB");
  const auto told = std::find_if(texts.begin(), texts.end(), [&](const WrittenText& text) {
    return std::regex_search(text.whole, memory);
  });
  REQUIRE(told != texts.end());
  std::smatch match;
  REQUIRE(std::regex_search(told->whole, match, memory));
  // A window with its software renderer takes more than 50 MiB and less than 2 GiB.
  CHECK(std::stod(match[1]) > 0.04);
  CHECK(std::stod(match[1]) < 2);
}

TEST_CASE("what was told lately has its times and can be copied, and slips are no dialogs") {
  BarredApp hidden;
  hidden.press("5");
  hidden.press("Ctrl+C");
  hidden.app.act(action::Maximise{ViewPane::query});
  hidden.settle();
  hidden.press("Shift+F12");
  CHECK_FALSE(hidden.app.failed());
  CHECK(hidden.app.notice().find("another pane is seen alone") != std::string::npos);
  hidden.press("Ctrl+M");
  const std::string told = hidden.app.failure();
  const std::regex time("^\\d\\d:\\d\\d:\\d\\d  nothing was written: ");
  CHECK(std::regex_search(told, time));
  CHECK(told.find("pin 5") != std::string::npos);
  hidden.click("Error/Copy");
  CHECK(hidden.app.clipboard() == told);
  hidden.click("Error/Close");
  CHECK_FALSE(hidden.app.failed());
}

TEST_CASE("a video is not offered where there is no ffmpeg") {
  BarredApp hidden;
  const char* const path = std::getenv("PATH");
  const std::string before = path == nullptr ? "" : path;
  REQUIRE(setenv("PATH", "/nowhere", 1) == 0);
  hidden.click("Query/Film");
  hidden.click("Film/Save MP4");
  CHECK(hidden.app.labels().find("Film/Save GIF"));
  CHECK_FALSE(hidden.app.failed());
  CHECK(hidden.app.notice().empty());
  REQUIRE(setenv("PATH", before.c_str(), 1) == 0);
}
