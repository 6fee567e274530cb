// Needs a display: run by ctest under xvfb-run.
#include <filesystem>

#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "tests/viewer/gl/hidden_app.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

/// The sample, zoomed in, with a query picked: what keys could spoil.
void open_zoomed(HiddenApp& hidden) {
  hidden.open_sample();
  hidden.app.act(action::PickQuery{{{700}}});
  hidden.app.act(action::ZoomAt{500, 500, 4});
  hidden.app.document()->history.end_gesture();
  REQUIRE(hidden.wait_for(WaitFor::exact));
  hidden.settle();
}

}  // namespace

TEST_CASE("keys act on the list that is open, not on the map behind it") {
  HiddenApp hidden;
  open_zoomed(hidden);
  const ViewState before = hidden.state();
  const int64_t head = before.head.head;
  hidden.click("Toolbar/Head");
  REQUIRE(hidden.app.labels().find("Head/1"));
  hidden.press("Down");
  hidden.press("Escape");
  CHECK_FALSE(hidden.app.labels().find("Head/1"));
  CHECK(hidden.state() == before);

  hidden.click("Toolbar/Head");
  hidden.press("Down");
  hidden.press("Enter");
  CHECK_FALSE(hidden.app.labels().find("Head/1"));
  CHECK(hidden.state().head.head == head + 1);
  CHECK(hidden.state().rect == before.rect);
  CHECK(hidden.state().query == before.query);

  hidden.click("Toolbar/Head");
  hidden.press("Home");
  hidden.press("Space");
  CHECK(hidden.state().head.head == 0);
  // And afterwards on the map again.
  hidden.press("Down");
  CHECK_FALSE(hidden.state().rect == before.rect);
  hidden.press("Escape");
  CHECK_FALSE(hidden.state().query);
}

TEST_CASE("keys act on the dialog, the help or the browser that is in front") {
  HiddenApp hidden;
  open_zoomed(hidden);
  const ViewState before = hidden.state();
  hidden.press("?");
  REQUIRE(hidden.app.labels().find("Help/Panel"));
  for (const char* key : {"Left", "Up", "]", "R", "Ctrl+O", "0"}) hidden.press(key);
  CHECK(hidden.app.labels().find("Help/Panel"));
  CHECK_FALSE(hidden.app.labels().find("Browser/Cancel"));
  CHECK(hidden.state() == before);
  hidden.press("Escape");
  CHECK_FALSE(hidden.app.labels().find("Help/Panel"));
  CHECK(hidden.state() == before);

  hidden.press("Ctrl+O");
  REQUIRE(hidden.app.labels().find("Browser/Cancel"));
  for (const char* key : {"Left", "Down", "Up", "M", "?"}) hidden.press(key);
  CHECK(hidden.state() == before);
  CHECK_FALSE(hidden.app.labels().find("Help/Panel"));
  hidden.press("Escape");
  CHECK_FALSE(hidden.app.labels().find("Browser/Cancel"));
  CHECK(hidden.state() == before);

  hidden.app.try_open("no such file");
  hidden.settle();
  REQUIRE(hidden.app.failed());
  for (const char* key : {"Right", "A", "["}) hidden.press(key);
  CHECK(hidden.app.failed());
  CHECK(hidden.state() == before);
  hidden.press("Enter");
  CHECK_FALSE(hidden.app.failed());
  CHECK(hidden.state() == before);
}

TEST_CASE("the browser goes through folders and opens a capture by keys alone") {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder.path() / "a/inner");
  std::filesystem::create_directories(folder.path() / "b");
  std::filesystem::create_directory_symlink(project_folder() + "/samples/moving-shapes",
                                            folder.path() / "b/sample");
  HiddenApp hidden;
  FileBrowser browser;
  const auto draw = [&] {
    PanelRequests requests;
    hidden.window.begin_frame([] {});
    LabelRegistry labels;
    browser.draw({theme_of(ViewTheme::dark), hidden.window.fonts(), labels}, {0, 0, 640, 480},
                 requests);
    hidden.window.render();
    return requests;
  };
  browser.open(folder.path());
  // Lines: "..", "a", "b".
  for (const Key key : {Key::down, Key::enter}) browser.press({key});
  CHECK_FALSE(draw().open);
  browser.press({Key::backspace});
  for (const Key key : {Key::end, Key::enter}) browser.press({key});
  CHECK_FALSE(draw().open);
  REQUIRE(browser.is_open());
  for (const Key key : {Key::down, Key::enter}) browser.press({key});
  const PanelRequests chosen = draw();
  REQUIRE(chosen.open);
  CHECK(std::filesystem::path(*chosen.open).filename() == "sample");
  CHECK_FALSE(browser.is_open());
}

TEST_CASE("what was saved is confirmed in the status line, with its path, for a while") {
  const TemporaryFolder folder;
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  HiddenApp hidden;
  hidden.open_sample();
  REQUIRE(hidden.wait_for(WaitFor::exact));
  CHECK_FALSE(hidden.app.labels().find("Status/Notice"));
  hidden.press("F12");
  std::filesystem::current_path(before);
  CHECK(std::filesystem::exists(folder / "attnscope-1.png"));
  CHECK(hidden.app.labels().find("Status/Notice"));
  CHECK(hidden.app.notice() == "picture saved: " + (folder / "attnscope-1.png"));
  const double limit = hidden.app.seconds() + 60;
  while (hidden.app.labels().find("Status/Notice") && hidden.app.seconds() < limit) {
    hidden.app.step(limit - hidden.app.seconds());
  }
  CHECK_FALSE(hidden.app.labels().find("Status/Notice"));
}

TEST_CASE("Escape and a button of its header lead back from a pane that is alone") {
  HiddenApp hidden;
  open_zoomed(hidden);
  REQUIRE(hidden.force_size({1200, 760}));
  const ViewState before = hidden.state();
  CHECK_FALSE(hidden.app.labels().find("Matrix/Back"));
  for (const ViewPane pane : {ViewPane::matrix, ViewPane::query, ViewPane::histogram}) {
    const std::string title = pane == ViewPane::matrix  ? "Matrix"
                              : pane == ViewPane::query ? "Query"
                                                        : "Histogram";
    INFO(title);
    hidden.app.act(action::Maximise{pane});
    hidden.settle();
    hidden.press("Escape");
    CHECK(hidden.state() == before);
    hidden.app.act(action::Maximise{pane});
    hidden.settle();
    hidden.click(title + "/Back");
    CHECK(hidden.state() == before);
  }
  // The query goes with the next one.
  hidden.press("Escape");
  CHECK_FALSE(hidden.state().query);
}
