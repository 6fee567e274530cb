// The window while nothing is open, the dialog that opens, and captures that are opened after or
// beside each other. Needs a display: run by ctest under xvfb-run.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <set>
#include <tuple>

#include "tests/support/catch.h"
#include "tests/support/png_picture.h"
#include "tests/support/reference_call.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tensor_files.h"
#include "tests/viewer/gl/hidden_app.h"
#include "tests/viewer/gl/seen_app.h"
#include "viewer/app/recent_pictures.h"

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

TEST_CASE("the start screen has a small picture of the map that was seen, which a hand clicks") {
  const TemporaryFolder folder;
  const path one = write_call(folder, "one.safetensors"),
             two = write_call(folder, "two.safetensors");
  const path pictures = folder.path() / "state" / "recent-pictures";
  const auto kept = [&] {
    std::vector<path> files;
    for (const auto& each : std::filesystem::directory_iterator(pictures)) {
      files.push_back(each.path());
    }
    return files;
  };
  {
    HiddenApp hidden(true, hidden_window(), with_recent(folder));
    hidden.app.open(two);
    CHECK_FALSE(std::filesystem::exists(pictures));
    hidden.app.open(one);
    REQUIRE(hidden.wait_for(WaitFor::exact));
    hidden.settle();
    REQUIRE(kept().size() == 1);
    // As it is closed, it has the colours that were seen last.
    const std::string first = read_bytes(kept().front());
    hidden.app.act(action::SetColormap{.name = "magma"});
    REQUIRE(hidden.wait_for(WaitFor::exact));
    hidden.settle();
    CHECK(read_bytes(kept().front()) == first);
    hidden.app.keep_picture();
    CHECK(read_bytes(kept().front()) != first);
  }
  const Picture small = read_png(kept().front().string());
  CHECK(small.width <= kRecentWidth);
  CHECK(small.height <= kRecentHeight);
  CHECK(std::max(small.width, small.height) >= 60);
  std::set<std::tuple<int, int, int>> colours;
  for (uint32_t i = 0; i < small.width * small.height; ++i) {
    colours.emplace(small.pixels[3 * i], small.pixels[3 * i + 1], small.pixels[3 * i + 2]);
  }
  CHECK(colours.size() > 20);

  HiddenApp seen(false, SeenApp::seen_window(), with_recent(folder));
  seen.settle();
  const auto rect = seen.app.labels().find("Empty/Picture of one.safetensors");
  REQUIRE(rect);
  CHECK_FALSE(seen.app.labels().find("Empty/Picture of two.safetensors"));
  CHECK(says(seen, "two.safetensors"));
  // On the screen as it was kept: each sixteenth has its mean colour.
  const gl::ReadPixels screen = seen.app.picture();
  const auto means = [](const auto& picture, double x0, double y0, double width, double height) {
    std::vector<double> of;
    for (int block = 0; block < 16; ++block) {
      std::array<double, 3> sums{};
      int count = 0;
      const double left = x0 + width * (block % 4) / 4, top = y0 + height * (block / 4) / 4;
      for (int y = static_cast<int>(top); y < static_cast<int>(top + height / 4); ++y) {
        for (int x = static_cast<int>(left); x < static_cast<int>(left + width / 4); ++x, ++count) {
          const Rgb colour = picture.at(x, y);
          sums[0] += colour.r;
          sums[1] += colour.g;
          sums[2] += colour.b;
        }
      }
      for (const double sum : sums) of.push_back(sum / std::max(count, 1));
    }
    return of;
  };
  const std::vector<double> shown =
      means(screen, rect->x0, rect->y0, rect->width(), rect->height());
  const std::vector<double> stored = means(small, 0, 0, small.width, small.height);
  for (size_t i = 0; i < shown.size(); ++i) {
    INFO("block " << i / 3 << ": " << shown[i] << ", kept " << stored[i]);
    CHECK(std::abs(shown[i] - stored[i]) < 20);
  }
  RealInput hand;
  int left = 0, top = 0;
  glfwGetWindowPos(glfwGetCurrentContext(), &left, &top);
  hand.move(left + static_cast<int>((rect->x0 + rect->x1) / 2),
            top + static_cast<int>((rect->y0 + rect->y1) / 2));
  seen.settle();
  hand.button(1, true);
  hand.button(1, false);
  seen.settle();
  REQUIRE(seen.app.document() != nullptr);
  CHECK(seen.app.document()->origin.path == one);
}

TEST_CASE("small pictures go with the captures that leave the list, and scripts keep none") {
  const TemporaryFolder folder;
  const path list = folder.path() / "state" / "recent",
             pictures = list.parent_path() / "recent-pictures";
  const gl::ReadPixels picture{2, 3, std::vector<Rgb>(6, Rgb{10, 20, 30})};
  CHECK_FALSE(keep_recent_picture(list, "/a/none", picture));
  REQUIRE(remember_file(list, "/a/first"));
  REQUIRE(keep_recent_picture(list, "/a/first", picture));
  const auto read = recent_picture(list, "/a/first");
  REQUIRE(read);
  CHECK(read->width() == 2);
  CHECK(read->height() == 3);
  CHECK(read->at(1, 2) == Rgb{10, 20, 30});
  write_bytes(pictures / "mine.png", "not a picture of a capture");
  for (size_t i = 0; i < kRecentFiles; ++i) {
    REQUIRE(remember_file(list, path("/a") / std::to_string(i)));
  }
  CHECK(recent_picture(list, "/a/first"));
  REQUIRE(keep_recent_picture(list, "/a/3", picture));
  CHECK_FALSE(recent_picture(list, "/a/first"));
  CHECK(recent_picture(list, "/a/3"));
  CHECK(std::filesystem::exists(pictures / "mine.png"));
  // A damaged one is none.
  for (const auto& each : std::filesystem::directory_iterator(pictures))
    write_bytes(each.path(), "x");
  CHECK_FALSE(recent_picture(list, "/a/3"));

  HiddenApp hidden(true, hidden_window(), first_settings());
  hidden.app.open(write_call(folder, "one.safetensors"));
  REQUIRE(hidden.wait_for(WaitFor::exact));
  hidden.app.keep_picture();
  CHECK(std::distance(std::filesystem::directory_iterator(pictures), {}) == 2);
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
