// The mouse on the rulers of the map, and its edges. Needs a display: run by ctest under xvfb-run.
#include <algorithm>
#include <cmath>

#include "tests/support/catch.h"
#include "tests/viewer/gl/hidden_app.h"
#include "viewer/panels/map/view_transform.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

/// 16 tokens of text, then 7 frames of 144 tokens.
constexpr double kAll = 1024;
MapRect whole_map() { return {0, kAll, 0, kAll}; }
double frame_begin(int t) { return 16 + 144.0 * t; }

/// The sample in a window of a usual size, and what a hand does there.
struct RuledApp : HiddenApp {
  RuledApp() {
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
  void wheel(const std::string& label, float share, int notches) {
    const ScreenRect r = place(label);
    app.mouse().wheel(r.x0 + r.width() * share, r.y0 + r.height() * share, notches);
    settle();
  }
  /// From one share of a label's length to another.
  void drag(const std::string& label, bool down, float from, float to) {
    const ScreenRect r = place(label);
    const auto at = [&](float share) {
      return down ? std::pair(r.x0 + r.width() / 2, r.y0 + r.height() * share)
                  : std::pair(r.x0 + r.width() * share, r.y0 + r.height() / 2);
    };
    app.mouse().drag(at(from).first, at(from).second, at(to).first, at(to).second, false, false);
    settle();
  }
  MapRect rect() const { return state().rect; }
};

}  // namespace

TEST_CASE("the wheel over a ruler zooms its side alone, and undo takes it back") {
  RuledApp seen;
  seen.wheel("Matrix/Keys", 0.5f, 2);
  CHECK(seen.rect().q0 == 0);
  CHECK(seen.rect().q1 == kAll);
  CHECK(seen.rect().k1 - seen.rect().k0 == Approx(kAll / (kWheelZoom * kWheelZoom)));
  seen.press("Ctrl+Z");
  CHECK(seen.rect() == whole_map());
  seen.wheel("Matrix/Queries", 0.5f, 1);
  CHECK(seen.rect().k0 == 0);
  CHECK(seen.rect().k1 == kAll);
  CHECK(seen.rect().q1 - seen.rect().q0 == Approx(kAll / kWheelZoom));
  // Out again it ends at the whole map.
  seen.wheel("Matrix/Queries", 0.5f, -5);
  CHECK(seen.rect() == whole_map());
}

TEST_CASE("the label of what is picked and the names of the frames leave each other room") {
  RuledApp seen;
  const auto names = [&](const ScreenRect& chip) {
    int there = 0;
    for (const WrittenText& text : seen.app.labels().texts()) {
      const bool on_ruler = text.rect.x1 <= seen.place("Matrix/Map").x0 &&
                            text.rect.x0 >= seen.place("Matrix/Queries").x0;
      if (!on_ruler || text.whole.front() != 't') continue;
      ++there;
      INFO(text.whole);
      const bool apart = text.rect.y1 <= chip.y0 + 1 || text.rect.y0 >= chip.y1 - 1;
      CHECK(apart);
    }
    return there;
  };
  // In the middle of a frame, at its beginning, and at the end of the map.
  for (const int64_t token : {16 + 3 * 144 + 72, 16 + 3 * 144 + 1, 1023, 8}) {
    seen.app.act(action::PickQuery{{{token}}});
    REQUIRE(seen.wait_for(WaitFor::exact));
    seen.settle();
    INFO(token);
    CHECK(names(seen.place("Matrix/Picked")) == 7);
  }
}

TEST_CASE("a drag along a ruler chooses what is seen of its side") {
  RuledApp seen;
  seen.drag("Matrix/Keys", false, 0.25f, 0.5f);
  CHECK(seen.rect().q0 == 0);
  CHECK(seen.rect().q1 == kAll);
  CHECK(std::abs(seen.rect().k0 - 256) < 4);
  CHECK(std::abs(seen.rect().k1 - 512) < 4);
  // Backwards too, and one step each.
  seen.drag("Matrix/Queries", true, 0.75f, 0.5f);
  CHECK(std::abs(seen.rect().q0 - 512) < 4);
  CHECK(std::abs(seen.rect().q1 - 768) < 4);
  seen.press("Ctrl+Z");
  CHECK(seen.rect().q1 == kAll);
  CHECK(std::abs(seen.rect().k0 - 256) < 4);
  seen.press("Ctrl+Z");
  CHECK(seen.rect() == whole_map());
}

TEST_CASE("the span is seen over ruler and map while it is dragged") {
  RuledApp seen;
  const ScreenRect keys = seen.place("Matrix/Keys"), map = seen.place("Matrix/Map");
  seen.app.mouse().hover(keys.x0 + keys.width() * 0.25f, (keys.y0 + keys.y1) / 2);
  seen.settle();
  const gl::ReadPixels before = seen.app.picture();
  // Half of the steps of a drag.
  seen.app.mouse().drag(keys.x0 + keys.width() * 0.25f, (keys.y0 + keys.y1) / 2,
                        keys.x0 + keys.width() * 0.75f, (keys.y0 + keys.y1) / 2, false, false);
  int marked = 0;
  for (int frame = 0; frame < 32 && !seen.app.mouse().done(); ++frame) {
    seen.app.draw_frame();
    const gl::ReadPixels now = seen.app.picture();
    const int x = static_cast<int>(std::round(keys.x0 + keys.width() * 0.25f));
    int changed = 0;
    for (int y = static_cast<int>(map.y0) + 40; y < static_cast<int>(map.y1) - 40; ++y) {
      changed += now.at(x, y) == before.at(x, y) ? 0 : 1;
    }
    marked = std::max(marked, changed);
  }
  CHECK(marked > static_cast<int>(map.height()) / 2);
  seen.settle();
  CHECK(std::abs(seen.rect().k1 - 768) < 4);
}

TEST_CASE("a click on a frame's name shows that frame") {
  RuledApp seen;
  seen.click("Keys/t2");
  CHECK(seen.rect() == MapRect{0, kAll, frame_begin(2), frame_begin(3)});
  seen.click("Queries/t4");
  CHECK(seen.rect() == MapRect{frame_begin(4), frame_begin(5), frame_begin(2), frame_begin(3)});
  seen.press("Ctrl+Z");
  CHECK(seen.rect() == MapRect{0, kAll, frame_begin(2), frame_begin(3)});
  seen.press("0");
  seen.click("Queries/text");
  CHECK(seen.rect() == MapRect{0, 16, 0, kAll});
}

TEST_CASE("rulers of a split map: B's own part has a ruler of its own") {
  RuledApp seen;
  const HeadId other = seen.app.document()->other_picker.nearest_to(
      seen.app.document()->picker.values(seen.state().head));
  seen.app.act(action::SetOther{other});
  seen.app.act(action::SetSplitLine{0.5f});
  seen.settle();
  // Locked, both halves show what a ruler chooses.
  seen.click("Keys/t1");
  CHECK(seen.rect() == MapRect{0, kAll, frame_begin(1), frame_begin(2)});
  CHECK_FALSE(seen.app.labels().find("Matrix/Keys of B"));
  seen.press("0");
  seen.app.act(action::SetLock{action::Lock::zoom, false});
  seen.settle();
  seen.app.act(action::SetOtherRect{{0, 512, 512, kAll}});
  seen.settle();
  seen.wheel("Matrix/Keys of B", 0.5f, 1);
  CHECK(seen.rect() == whole_map());
  const MapRect b = seen.state().other->rect;
  CHECK(b.q0 == 0);
  CHECK(b.q1 == 512);
  CHECK(b.k1 - b.k0 == Approx(512 / kWheelZoom));
  // A's half has what was chosen, B's half what is chosen there.
  const ScreenRect map = seen.place("Matrix/Map");
  const double share = std::round(map.width() / 2) / map.width();
  seen.click("Keys/t1");
  CHECK(seen.rect().k0 == frame_begin(1));
  CHECK(seen.rect().k1 == Approx(frame_begin(1) + 144 / share));
  CHECK(seen.state().other->rect == b);
  seen.app.act(action::SetOtherRect{whole_map()});
  seen.settle();
  seen.click("Keys of B/t5");
  CHECK(seen.state().other->rect.k1 == Approx(frame_begin(6)));
  CHECK(seen.state().other->rect.k0 == Approx(frame_begin(6) - 144 / (1 - share)));
}

TEST_CASE("released, halves that show one part still have a ruler each") {
  RuledApp seen;
  const HeadId other = seen.app.document()->other_picker.nearest_to(
      seen.app.document()->picker.values(seen.state().head));
  seen.app.act(action::SetOther{other});
  seen.app.act(action::SetSplitLine{0.5f});
  seen.app.act(action::SetLock{action::Lock::zoom, false});
  seen.settle();
  seen.click("Keys/t2");
  CHECK(seen.rect().k0 == frame_begin(2));
  CHECK(std::abs(seen.rect().k1 - frame_begin(4)) < 2);
  CHECK(seen.state().other->rect == whole_map());
}

TEST_CASE("a shaky click on a ruler shows its frame") {
  RuledApp seen;
  const ScreenRect frame = seen.place("Keys/t2");
  const float x = std::round((frame.x0 + frame.x1) / 2), y = std::round((frame.y0 + frame.y1) / 2);
  seen.app.mouse().drag(x, y, x + 1, y + 4, false, false);
  seen.settle();
  CHECK(seen.rect() == MapRect{0, kAll, frame_begin(2), frame_begin(3)});
}

TEST_CASE("Escape gives up what is dragged over a ruler, and keeps the query") {
  RuledApp seen;
  seen.app.act(action::PickQuery{{{700}}});
  seen.settle();
  const ScreenRect keys = seen.place("Matrix/Keys");
  seen.app.mouse().drag(keys.x0 + 100, keys.y0 + 10, keys.x0 + 300, keys.y0 + 10, false, false);
  for (int frame = 0; frame < 4; ++frame) seen.app.draw_frame();
  REQUIRE_FALSE(seen.app.mouse().done());
  seen.press("Escape");
  CHECK(seen.rect() == whole_map());
  REQUIRE(seen.state().query);
  seen.press("Escape");
  CHECK_FALSE(seen.state().query);
}

TEST_CASE("the name of the picked token shows its block, and is whole") {
  RuledApp seen;
  // The first row of a frame, next to another one; the last frame's last token, at the edge.
  for (const int64_t token : {16 + 3 * 144, 16 + 7 * 144 - 1}) {
    for (const bool reverse : {false, true}) {
      INFO(token << reverse);
      seen.app.act(action::SetRect{whole_map()});
      seen.app.act(action::PickQuery{{{token}}});
      seen.app.act(action::SetReverse{reverse});
      seen.settle();
      seen.click("Matrix/Picked");
      const int frame = static_cast<int>((token - 16) / 144);
      const double begin = frame_begin(frame), end = frame_begin(frame + 1);
      CHECK(seen.rect() == (reverse ? MapRect{0, kAll, begin, end} : MapRect{begin, end, 0, kAll}));
      REQUIRE(seen.state().query);
      CHECK(seen.state().query->tokens == std::vector{token});
    }
  }
  seen.app.act(action::SetReverse{false});
  seen.app.act(action::PickQuery{{{20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31}}});
  seen.app.act(action::SetRect{whole_map()});
  seen.settle();
  const auto& texts = seen.app.labels().texts();
  const auto name = std::find_if(texts.begin(), texts.end(), [](const WrittenText& each) {
    return each.whole == "q mean of 12";
  });
  REQUIRE(name != texts.end());
  CHECK(seen.place("Matrix/Picked").x1 > seen.place("Matrix/Map").x0);
}

TEST_CASE("of equal scales a ruler zooms both sides") {
  RuledApp seen;
  seen.app.act(action::Switch{&ViewState::equal_axes, true});
  seen.settle();
  seen.click("Keys/t2");
  CHECK(seen.rect() == MapRect{512 - 72, 512 + 72, frame_begin(2), frame_begin(3)});
  CHECK(seen.place("Matrix/Map").height() > 100);
}

TEST_CASE("the map cannot be moved or zoomed off its pane, by keys, wheel or hand") {
  RuledApp seen;
  for (const char* chord : {"Up", "Left", "Down", "Right", "-"}) {
    for (int i = 0; i < 3; ++i) seen.press(chord);
    INFO(chord);
    CHECK(seen.rect() == whole_map());
  }
  seen.wheel("Matrix/Map", 0.3f, -3);
  CHECK(seen.rect() == whole_map());
  seen.drag("Matrix/Map", false, 0.2f, 0.8f);
  CHECK(seen.rect() == whole_map());
  seen.app.act(action::SetRect{{0, 100, 900, kAll}});
  seen.drag("Matrix/Map", true, 0.2f, 0.8f);
  seen.drag("Matrix/Map", false, 0.8f, 0.2f);
  CHECK(seen.rect().q0 == 0);
  CHECK(seen.rect().q1 == Approx(100));
  CHECK(seen.rect().k0 == Approx(900));
  CHECK(seen.rect().k1 == kAll);
}
