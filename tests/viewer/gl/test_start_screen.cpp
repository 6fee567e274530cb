// The window while nothing is open, the dialog that opens, and captures that are opened after or
// beside each other. Needs a display: run by ctest under xvfb-run.
#include <algorithm>
#include <cstdlib>

#include "tests/support/catch.h"
#include "tests/support/reference_call.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tensor_files.h"
#include "tests/viewer/gl/hidden_app.h"

using namespace attnscope;
using namespace attnscope::test;
using std::filesystem::path;

namespace {

/// A window with a list of what was opened lately.
ViewerApp::Settings with_recent(const TemporaryFolder& folder) {
  ViewerApp::Settings settings = first_settings();
  settings.recent_list = folder.path() / "state" / "recent";
  return settings;
}

bool says(const HiddenApp& hidden, const std::string& part) {
  const auto& texts = hidden.app.labels().texts();
  return std::any_of(texts.begin(), texts.end(), [&](const WrittenText& text) {
    return text.whole.find(part) != std::string::npos;
  });
}

path write_call(const TemporaryFolder& folder, const std::string& name) {
  const path file = folder.path() / name;
  ReferenceCall({1, 2, 2, 24, 24, 8}, 5).fact("grid", "2x3x4").write(file);
  return file;
}

}  // namespace

TEST_CASE("the start screen has what was opened lately, with what it was, and what is gone") {
  const TemporaryFolder folder;
  const path one = write_call(folder, "one.safetensors"),
             two = write_call(folder, "two.safetensors");
  {
    HiddenApp hidden(true, hidden_window(), with_recent(folder));
    hidden.app.open(one);
    hidden.app.open(two);
  }
  std::filesystem::remove(two);
  HiddenApp hidden(true, hidden_window(), with_recent(folder));
  REQUIRE(hidden.force_size({1280, 800}));
  CHECK(says(hidden, " \u00b7 1 call, 2 heads \u00b7 24 tokens"));
  CHECK(says(hidden, "gone"));
  CHECK_FALSE(hidden.app.labels().find("Empty/two.safetensors"));
  hidden.click("Empty/one.safetensors");
  REQUIRE(hidden.app.document() != nullptr);
  CHECK(hidden.app.document()->origin.path == one);
}

TEST_CASE("a window that waits for a capture says so first") {
  const TemporaryFolder folder;
  HiddenApp hidden;
  REQUIRE(hidden.force_size({1280, 800}));
  CHECK(says(hidden, "Drop a capture here"));
  hidden.app.await({folder.path() / "dump", {}, {}}, {});
  hidden.settle();
  CHECK(says(hidden, "Waiting for the first call of dump"));
  CHECK_FALSE(says(hidden, "Drop a capture here"));
}

TEST_CASE("the sample is synthetic, says so, goes with the window, and can be kept") {
  const TemporaryFolder folder;
  path sample;
  {
    HiddenApp hidden(true, hidden_window(), with_recent(folder));
    REQUIRE(hidden.force_size({1280, 800}));
    hidden.click("Empty/Sample");
    REQUIRE(hidden.app.document() != nullptr);
    sample = hidden.app.document()->origin.path;
    CHECK(std::filesystem::exists(sample / "capture.json"));
    CHECK(hidden.app.document()->capture->model() == "synthetic sample");
    CHECK(hidden.state().atlas.shown);
    CHECK(says(hidden, "a synthetic capture, made by formulas"));
    REQUIRE(hidden.wait_for(WaitFor::exact));
    // A session beside it would go with it.
    hidden.press("Ctrl+S");
    CHECK(hidden.app.notice().find("save it first") != std::string::npos);
    CHECK_FALSE(hidden.app.failed());
    CHECK_THROWS_AS(hidden.app.save_session(folder.path() / "sample.session"), Error);
    CHECK_FALSE(std::filesystem::exists(folder.path() / "sample.session"));
    // Nothing of it stays in the list of what was opened.
    CHECK(recent_files(folder.path() / "state" / "recent").empty());

    hidden.click("Sample/Save as\u2026");
    REQUIRE(hidden.app.labels().find("Browser/Save"));
    hidden.press("Escape");
    // Where it is it would go as well, under whatever name of that folder.
    std::filesystem::create_directory_symlink(sample.parent_path(), folder.path() / "link");
    for (const path& there :
         {sample.parent_path() / "mine", sample / "mine", folder.path() / "link" / "mine"}) {
      hidden.app.save_sample(there);
      CHECK(hidden.app.failure().find("goes with the window") != std::string::npos);
      hidden.press("Escape");
      CHECK(hidden.app.document()->origin.path == sample);
      CHECK_FALSE(std::filesystem::exists(there));
    }
    hidden.app.save_sample(folder.path() / "kept");
    hidden.settle();
    CHECK(hidden.app.document()->origin.path == folder.path() / "kept");
    CHECK_FALSE(says(hidden, "a synthetic capture, made by formulas"));
    CHECK_FALSE(std::filesystem::exists(sample.parent_path()));
    hidden.app.save_sample(folder.path() / "kept");
    CHECK(hidden.app.failed());
  }
  CHECK(std::filesystem::exists(folder.path() / "kept" / "capture.json"));
}

TEST_CASE("a session is saved where what is open has its own, not over that of a capture before") {
  const TemporaryFolder folder;
  const path one = write_call(folder, "one.safetensors"),
             two = write_call(folder, "two.safetensors"), saved = folder.path() / "first.session";
  ViewerApp::Settings settings = first_settings();
  {
    HiddenApp hidden(true, hidden_window(), settings);
    hidden.app.open(one);
    hidden.app.save_session(saved);
  }
  const std::string before = read_bytes(saved);
  {
    HiddenApp hidden(true, hidden_window(), settings);
    hidden.app.open(saved);
    hidden.app.open(two);
    hidden.settle();
    hidden.press("Ctrl+S");
    CHECK_FALSE(hidden.app.failed());
    CHECK(read_bytes(saved) == before);
    CHECK(read_bytes(two.string() + ".session").find("two.safetensors") != std::string::npos);
    // Its own is replaced, also after the same capture was opened once more.
    hidden.app.open(saved);
    hidden.app.open(one);
    hidden.app.act(action::PickQuery{{{3}}});
    hidden.settle();
    hidden.press("Ctrl+S");
    CHECK(read_bytes(saved) != before);
    CHECK_FALSE(std::filesystem::exists(one.string() + ".session"));
  }
  // As the program is told it.
  settings.session = folder.path() / "told.session";
  HiddenApp told(true, hidden_window(), settings);
  told.app.open(one);
  told.settle();
  told.press("Ctrl+S");
  CHECK(std::filesystem::exists(settings.session));
}

TEST_CASE("a sample that has no place to be is told in a dialog") {
  const TemporaryFolder folder;
  HiddenApp hidden;
  REQUIRE(hidden.force_size({1280, 800}));
  const char* const before = std::getenv("TMPDIR");
  const std::string kept = before == nullptr ? "" : before;
  ::setenv("TMPDIR", (folder / "nowhere").c_str(), 1);
  hidden.click("Empty/Sample");
  if (before == nullptr) {
    ::unsetenv("TMPDIR");
  } else {
    ::setenv("TMPDIR", kept.c_str(), 1);
  }
  CHECK(hidden.app.document() == nullptr);
  CHECK(hidden.app.failure().find("TMPDIR: names no folder for a sample") != std::string::npos);
}

TEST_CASE("the folder that is made for the next time is told once") {
  const TemporaryFolder folder;
  const path one = write_call(folder, "one.safetensors"), kept = folder.path() / ".attnscope";
  ViewerApp::Settings settings = first_settings();
  settings.kept_in = [&](const Capture&) { return std::vector<path>{kept}; };
  HiddenApp hidden(true, hidden_window(), settings);
  hidden.app.open(one);
  REQUIRE(hidden.wait_for(WaitFor::exact));
  CHECK(hidden.app.notice().empty());
  std::filesystem::create_directory(kept);
  hidden.window.request_frames();
  hidden.settle();
  CHECK(hidden.app.notice().find(kept.string()) != std::string::npos);
  hidden.app.open(one);
  REQUIRE(hidden.wait_for(WaitFor::exact));
  hidden.settle();
  hidden.app.tell("something else");
  hidden.settle();
  CHECK(hidden.app.notice() == "something else");
}

TEST_CASE("letters mark what begins with them in the dialog, and a path can be typed") {
  const TemporaryFolder folder;
  for (const char* name : {"alpha", "Beta", "bench"}) {
    std::filesystem::create_directory(folder.path() / name);
  }
  const path inner = folder.path() / "bench" / "call.safetensors";
  ReferenceCall({1, 1, 1, 24, 24, 8}, 5).write(inner);
  HiddenApp hidden;
  REQUIRE(hidden.force_size({1280, 800}));
  hidden.app.open(inner);
  hidden.settle();
  hidden.press("Ctrl+O");
  hidden.press("Backspace");
  REQUIRE(hidden.app.labels().find("Browser/Beta"));
  hidden.press("B");
  hidden.press("E");
  hidden.press("N");
  hidden.press("Enter");
  REQUIRE(hidden.app.labels().find("Browser/call.safetensors"));
  hidden.press("C");
  hidden.press("Enter");
  CHECK_FALSE(hidden.app.labels().find("Browser/Cancel"));
  CHECK_FALSE(hidden.app.failed());
}

TEST_CASE("a capture is seen as it is opened, whatever head of another the cursor was on") {
  HiddenApp hidden(true, hidden_window(), first_settings());
  REQUIRE(hidden.force_size({1280, 800}));
  hidden.open_sample();
  REQUIRE(hidden.wait_for(WaitFor::exact));
  const auto area = hidden.app.labels().find("Atlas/Area");
  REQUIRE(area);
  // Over the pane, and over no head of it.
  hidden.app.mouse().hover(area->x1 - 1, area->y1 - 1);
  hidden.settle();
  hidden.press("End");
  REQUIRE(hidden.app.document()->preview);
  hidden.open_sample();
  hidden.settle();
  CHECK_FALSE(hidden.app.document()->preview);
}

TEST_CASE("a page names the capture that its map is of, also of side B") {
  const TemporaryFolder folder;
  const path one = write_call(folder, "one.safetensors"),
             two = write_call(folder, "two.safetensors");
  const auto backend = make_backend(parse_backend("auto"), {1});
  ViewerApp::Settings settings;
  settings.make_source.of_two = [&](const Capture& a, const Capture& b,
                                    std::function<void()> wake) {
    return tiles_of_two(a, b, *backend, TileService::Settings{}, std::move(wake));
  };
  HiddenApp hidden(true, hidden_window(), settings);
  REQUIRE(hidden.force_size({1280, 800}));
  hidden.app.open(CaptureOrigin{one, {}, {}}, two);
  for (const bool other : {false, true}) {
    hidden.app.show_other(other);
    hidden.settle();
    REQUIRE(hidden.wait_for(WaitFor::exact));
    const path page = folder.path() / (other ? "b.svg" : "a.svg");
    hidden.app.save_figure(page);
    const std::string title = "<title>" + (other ? two : one).filename().string() + "</title>";
    CHECK(read_bytes(page).find(title) != std::string::npos);
  }
}
