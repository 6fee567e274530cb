// What a window begins with, by what a capture has. Needs a display: run by ctest under xvfb-run.
#include "tests/support/catch.h"
#include "tests/support/reference_call.h"
#include "tests/support/temporary_folder.h"
#include "tests/viewer/gl/hidden_app.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

/// As a person's window begins.
struct FirstWindow : HiddenApp {
  FirstWindow() : HiddenApp(true, hidden_window(), first_settings()) {}
};

}  // namespace

TEST_CASE("a capture with heads, a prompt and pictures begins with all of them") {
  FirstWindow first;
  REQUIRE(first.force_size({1280, 800}));
  first.open_sample();
  CHECK(first.state().atlas.shown);
  CHECK(first.state().words.shown);
  CHECK(first.state().film == FilmLook{.over = true, .mode = FilmMode::contour});
  CHECK_FALSE(first.app.document()->history.can_undo());
  REQUIRE(first.wait_for(WaitFor::exact));
  const auto label = [&](const char* name) {
    const auto rect = first.app.labels().find(name);
    INFO(name);
    REQUIRE(rect);
    return *rect;
  };
  CHECK(label("Words/Header").y0 > label("Heads/Header").y1);
  CHECK(label("Words/Header").x0 == label("Heads/Header").x0);
  CHECK(label("Query/Header").width() >= 400);
  CHECK(label("Matrix/Header").width() >= 400);
  // A width that somebody has chosen stands, and so does a session.
  first.app.act(action::SetSplit{0.3f});
  first.settle();
  CHECK(label("Query/Header").width() < 400);
  const TemporaryFolder folder;
  first.app.act(action::SetWords{});
  first.app.act(action::SetFilm{});
  first.app.save_session(folder.path() / "kept.session");
  first.open_sample();
  CHECK(first.state().words.shown);
  first.app.open(folder.path() / "kept.session");
  CHECK_FALSE(first.state().words.shown);
  CHECK_FALSE(first.state().film.over);
  CHECK(first.state().atlas.shown);
}

TEST_CASE("a capture of one head without words and pictures begins with its map alone") {
  const TemporaryFolder folder;
  ReferenceCall({1, 1, 1, 24, 24, 8}, 5)
      .fact("grid", "2x3x4")
      .write(folder.path() / "one.safetensors");
  FirstWindow first;
  first.app.open(folder.path() / "one.safetensors");
  CHECK_FALSE(first.state().atlas.shown);
  CHECK_FALSE(first.state().words.shown);
  CHECK_FALSE(first.state().film.over);
}
