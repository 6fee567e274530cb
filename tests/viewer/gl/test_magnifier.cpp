// The magnifier beside the mouse. Needs a display: run by ctest under xvfb-run.
#include <algorithm>
#include <cmath>

#include "core/base/number_words.h"
#include "tests/support/catch.h"
#include "tests/viewer/gl/hidden_app.h"
#include "viewer/panels/map/view_transform.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

struct MagnifiedApp : HiddenApp {
  MagnifiedApp() {
    open_sample();
    REQUIRE(force_size({1200, 760}));
    REQUIRE(wait_for(WaitFor::exact));
    settle();
  }
  ScreenRect place(const std::string& label) {
    const auto rect = app.labels().find(label);
    INFO(label);
    REQUIRE(rect);
    return *rect;
  }
  /// To shares of a label, until all that is seen there is exact.
  std::pair<float, float> point(const std::string& label, float across, float down) {
    const ScreenRect r = place(label);
    const std::pair at(r.x0 + r.width() * across, r.y0 + r.height() * down);
    app.mouse().hover(at.first, at.second);
    settle();
    REQUIRE(wait_for(WaitFor::exact));
    settle();
    return at;
  }
  bool is_written(const std::string& text) {
    const auto panel = app.labels().find("Magnifier/Panel");
    const auto& texts = app.labels().texts();
    return panel && std::any_of(texts.begin(), texts.end(), [&](const WrittenText& each) {
             return each.whole == text && panel->contains(each.rect.x0, each.rect.y0);
           });
  }
  bool is_there() { return app.labels().find("Magnifier/Panel").has_value(); }
};

}  // namespace

TEST_CASE("the magnifier is there while its key is held, and changes nothing") {
  MagnifiedApp seen;
  const ViewState before = seen.state();
  seen.point("Matrix/Map", 0.5f, 0.5f);
  CHECK_FALSE(seen.is_there());
  seen.press("Z");
  CHECK(seen.is_there());
  seen.app.release(parse_chord("Z"));
  seen.settle();
  CHECK_FALSE(seen.is_there());
  CHECK(seen.state() == before);
  // Its button keeps it, as a step of undo.
  seen.click("Matrix/Magnify");
  CHECK(seen.state().magnifier);
  seen.point("Matrix/Map", 0.5f, 0.5f);
  CHECK(seen.is_there());
  seen.press("Ctrl+Z");
  CHECK_FALSE(seen.is_there());
}

TEST_CASE("the magnifier has the entry's number and its tokens, at every zoom") {
  MagnifiedApp seen;
  seen.app.act(action::Switch{&ViewState::magnifier, true});
  for (const double size : {1024.0, 200.0, 11.0}) {
    seen.app.act(action::SetRect{{400, 400 + size, 300, 300 + size}});
    seen.settle();
    // The mouse is on whole pixels.
    const auto [x, y] = seen.point("Matrix/Map", 0.31f, 0.63f);
    const ViewTransform view{seen.state().rect, seen.place("Matrix/Map")};
    const auto row = static_cast<int64_t>(view.query(std::floor(y)));
    const auto col = static_cast<int64_t>(view.key(std::floor(x)));
    std::optional<ProbedEntry> entry;
    while (!(entry = seen.app.probe(row, col))) seen.app.step(0.01);
    INFO(size);
    CHECK(seen.is_written(number_words(static_cast<double>(static_cast<float>(entry->weight)), 4)));
    const Document& document = *seen.app.document();
    const MapSource& call = document.call_of(seen.state().head);
    CHECK(seen.is_written("q " + token_text(TokenNames::of(call, 0, false), row)));
    CHECK(seen.is_written("k " + token_text(TokenNames::of(call, 0, true), col)));
    // Both lie in the video, whose pictures the capture has.
    CHECK(seen.app.labels().find("Magnifier/Query"));
    CHECK(seen.app.labels().find("Magnifier/Key"));
  }
  // The text has no patch.
  seen.app.act(action::Fit{});
  seen.settle();
  seen.point("Matrix/Map", 0.005f, 0.5f);
  CHECK(seen.app.labels().find("Magnifier/Query"));
  CHECK_FALSE(seen.app.labels().find("Magnifier/Key"));
}

TEST_CASE("the magnifier stays within the window, and off the mouse") {
  MagnifiedApp seen;
  seen.app.act(action::Switch{&ViewState::magnifier, true});
  for (const WindowSize size :
       {WindowSize{1200, 760}, WindowSize{640, 480}, WindowSize{320, 240}}) {
    REQUIRE(seen.force_size(size));
    for (const float across : {0.01f, 0.5f, 0.99f}) {
      for (const float down : {0.01f, 0.5f, 0.99f}) {
        INFO(size.width << ", " << across << ", " << down);
        const auto [x, y] = seen.point("Matrix/Map", across, down);
        const ScreenRect panel = seen.place("Magnifier/Panel");
        CHECK(panel.x0 >= 0);
        CHECK(panel.y0 >= 0);
        CHECK(panel.x1 <= static_cast<float>(size.width));
        CHECK(panel.y1 <= static_cast<float>(size.height));
        if (size.width == 1200) CHECK_FALSE(panel.contains(x, y));
        CHECK(panel.width() <= 0.75f * static_cast<float>(size.width));
        CHECK(panel.height() <= 0.75f * static_cast<float>(size.height));
      }
    }
  }
}

TEST_CASE("the magnifier of an overview has colours of its own, and says from where to where") {
  MagnifiedApp seen;
  REQUIRE(seen.force_size({700, 480}));
  seen.app.act(action::Switch{&ViewState::magnifier, true});
  const auto says_range = [&] {
    const auto& texts = seen.app.labels().texts();
    return std::any_of(texts.begin(), texts.end(),
                       [](const WrittenText& each) { return each.whole.starts_with("colours "); });
  };
  seen.point("Matrix/Map", 0.3f, 0.62f);
  REQUIRE(seen.app.level() > 0);
  CHECK(says_range());
  const gl::ReadPixels picture = seen.app.picture();
  const ScreenRect panel = seen.place("Magnifier/Panel");
  std::vector<int> greens;
  for (int cell = 0; cell < 121; ++cell) {
    const int x = static_cast<int>(panel.x0) + 10 + 36 * (cell % 11);
    const int y = static_cast<int>(panel.y0) + 10 + 20 * (cell / 11);
    greens.push_back(picture.at(x, y).g);
  }
  const auto [low, high] = std::minmax_element(greens.begin(), greens.end());
  CHECK(*high - *low > 150);
  seen.app.act(action::SetRect{{400, 500, 300, 400}});
  seen.settle();
  seen.point("Matrix/Map", 0.3f, 0.62f);
  CHECK(seen.app.level() == 0);
  CHECK_FALSE(says_range());
}

TEST_CASE("the magnifier has the veil of a mask, as the map") {
  MagnifiedApp seen;
  seen.app.act(action::Switch{&ViewState::magnifier, true});
  // Between two frames of one place, of which a temporal mask keeps next to nothing.
  seen.point("Matrix/Map", 0.3f, 0.62f);
  const ScreenRect panel = seen.place("Magnifier/Panel");
  const auto pixel = [&] {
    const gl::ReadPixels picture = seen.app.picture();
    return picture.at(static_cast<int>(panel.x0) + 10, static_cast<int>(panel.y0) + 10);
  };
  const Rgb bare = pixel();
  MaskLook look;
  look.shown = true;
  look.text = "temporal";
  seen.app.act(action::SetMask{look});
  REQUIRE(seen.wait_for(WaitFor::mask));
  seen.point("Matrix/Map", 0.3f, 0.62f);
  const Rgb veiled = pixel();
  CHECK_FALSE(veiled == bare);
  CHECK(veiled.g < bare.g);
  // By what is lost there, where the map has that.
  look.lost = true;
  seen.app.act(action::SetMask{look});
  REQUIRE(seen.wait_for(WaitFor::mask));
  seen.point("Matrix/Map", 0.3f, 0.62f);
  CHECK_FALSE(pixel() == veiled);
}

TEST_CASE("a button that is clicked while the magnifier's key is held keeps it") {
  MagnifiedApp seen;
  seen.press("Z");
  seen.click("Matrix/Magnify");
  seen.app.release(parse_chord("Z"));
  seen.settle();
  CHECK(seen.state().magnifier);
}

TEST_CASE("the magnifier is there while the mouse is over entries, also of one that is walked to") {
  MagnifiedApp seen;
  seen.app.act(action::Switch{&ViewState::magnifier, true});
  seen.app.act(action::PickQuery{{{700}}});
  seen.point("Matrix/Map", 0.5f, 0.5f);
  seen.press("J");
  CHECK(seen.is_there());
  seen.point("Toolbar/Head", 0.5f, 0.5f);
  seen.press("J");
  CHECK_FALSE(seen.is_there());
}

TEST_CASE("the magnifier says whose number it has") {
  MagnifiedApp seen;
  seen.app.act(action::Switch{&ViewState::magnifier, true});
  const HeadId other = seen.app.document()->other_picker.nearest_to(
      seen.app.document()->picker.values(seen.state().head));
  seen.app.act(action::SetOther{other});
  const auto begins = [&](const std::string& side) {
    const auto panel = seen.place("Magnifier/Panel");
    const auto& texts = seen.app.labels().texts();
    return std::any_of(texts.begin(), texts.end(), [&](const WrittenText& each) {
      return each.whole.starts_with(side) && panel.contains(each.rect.x0, each.rect.y0);
    });
  };
  seen.app.act(action::SetSplitLine{0.5f});
  seen.settle();
  seen.point("Matrix/Map", 0.25f, 0.5f);
  CHECK(begins("A: "));
  seen.point("Matrix/Map", 0.75f, 0.5f);
  CHECK(begins("B: "));
}
