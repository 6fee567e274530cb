// Needs a display: run by ctest under xvfb-run. Each pane once by a real mouse and real keys, which
// come through the X server.
#include <algorithm>

#include "tests/viewer/gl/seen_app.h"

using namespace attnscope;
using namespace attnscope::test;

TEST_CASE("a hand moves the map, picks, pins, and goes through heads, orders and tracks") {
  SeenApp seen;
  const MapRect all = seen.state().rect;
  seen.point("Matrix/Map");
  seen.tap('+');
  CHECK(seen.state().rect.k1 - seen.state().rect.k0 < all.k1 - all.k0);
  seen.tap('0');
  CHECK(seen.state().rect == all);
  seen.hand.button(4, true);
  seen.hand.button(4, false);
  seen.settle();
  const MapRect near = seen.state().rect;
  CHECK(near.q1 - near.q0 < all.q1 - all.q0);
  seen.drag("Matrix/Map", 0.5, 0.5, 0.7, 0.5);
  CHECK(seen.state().rect.k0 < near.k0);
  seen.tap('0');
  seen.click("Keys/t2");
  CHECK(seen.state().rect == MapRect{0, 1024, 16 + 2 * 144, 16 + 3 * 144});
  seen.double_click("Matrix/Keys");
  CHECK(seen.state().rect == all);
  seen.click("Matrix/Map");
  CHECK(seen.state().query);
  seen.hand.key('z', true);
  seen.settle();
  CHECK(seen.there("Magnifier/Panel"));
  seen.hand.key('z', false);
  seen.settle();
  CHECK_FALSE(seen.there("Magnifier/Panel"));
  seen.tap('p');
  REQUIRE(seen.state().pins.at(1));
  CHECK(seen.there("Matrix/Pin 1"));
  seen.tap('0');
  seen.tap('+');
  seen.tap('1');
  const Pin pin = *seen.state().pins.at(1);
  CHECK(seen.state().query->tokens == std::vector<int64_t>{pin.query});
  const HeadId first = seen.state().head;
  seen.tap(']');
  CHECK_FALSE(seen.state().head == first);
  seen.tap('o');
  CHECK_FALSE(seen.state().order.is_stored());
  seen.click("Matrix/Order");
  seen.click("Order/hilbert");
  CHECK(seen.state().order.rows.text() == "hilbert");
  seen.tap('n');
  seen.tap('N');
  CHECK(seen.state().tracks.rows == RowTrack::entropy);
  CHECK(seen.state().tracks.keys == KeyTrack::mass);
  REQUIRE(seen.wait_for(WaitFor::exact));
  // The name of the track is a button.
  seen.tap_with(RealInput::kControl, 'z');
  CHECK(seen.state().tracks.keys == KeyTrack::off);
}

TEST_CASE("a hand goes through the heads, compares two and ranks their rows") {
  SeenApp seen;
  seen.tap('t');
  REQUIRE(seen.wait_for(WaitFor::atlas));
  seen.settle();
  seen.click("Atlas/L2/H1");
  const HeadPicker& picker = seen.app.document()->picker;
  CHECK(picker.values(seen.state().head).layer == 2);
  seen.click("Atlas/L3/H0", 3);
  REQUIRE(seen.state().other);
  CHECK(picker.values(seen.state().other->head).layer == 3);
  seen.tap('x');
  CHECK(seen.state().other->difference == Difference::signed_difference);
  seen.point("Matrix/Map");
  seen.hand.key('b', true);
  seen.settle();
  CHECK(seen.app.document()->shows_other);
  seen.hand.key('b', false);
  seen.settle();
  CHECK_FALSE(seen.app.document()->shows_other);
  seen.click("B/Rows");
  seen.double_click("Rows/Header");
  CHECK(seen.state().maximised == ViewPane::ranked);
  REQUIRE(seen.wait_for(WaitFor::idle));
  seen.settle();
  seen.click("Rows/0");
  CHECK(seen.state().query);
  seen.double_click("Rows/Header");
  CHECK_FALSE(seen.state().maximised);
  seen.click("B/Split");
  REQUIRE(seen.state().other->split);
  seen.drag("Matrix/Split", 0.5, 0.4, 12, 0.4);
  CHECK(*seen.state().other->split > 0.5f);
}

TEST_CASE("a hand goes over the heads by keys, and selects some") {
  SeenApp seen;
  seen.tap('t');
  REQUIRE(seen.wait_for(WaitFor::atlas));
  seen.settle();
  const HeadPicker& picker = seen.app.document()->picker;
  const auto values = [&](const HeadId& head) {
    return std::pair(picker.values(head).layer, picker.values(head).head);
  };
  const HeadId before = seen.state().head;
  seen.point("Atlas/L1/H1");
  seen.tap(RealInput::kRight);
  seen.tap(RealInput::kDown);
  CHECK(values(seen.app.document()->shown().head) == std::pair<int64_t, int64_t>(2, 2));
  CHECK(seen.state().head == before);
  seen.tap(RealInput::kReturn);
  CHECK(values(seen.state().head) == std::pair<int64_t, int64_t>(2, 2));
  seen.tap(RealInput::kLeft);
  seen.tap('b');
  REQUIRE(seen.state().other);
  CHECK(values(seen.state().other->head) == std::pair<int64_t, int64_t>(2, 1));
  CHECK_FALSE(seen.app.document()->shows_other);
  // The cursor goes with the mouse, and Escape lets it go.
  seen.point("Atlas/L0/H3");
  seen.tap(RealInput::kReturn);
  CHECK(values(seen.state().head) == std::pair<int64_t, int64_t>(0, 3));
  CHECK(seen.there("Atlas/Cursor"));
  seen.tap(RealInput::kEscape);
  CHECK_FALSE(seen.there("Atlas/Cursor"));
  const auto click_with = [&](uint32_t held, const std::string& label) {
    seen.hand.key(held, true);
    seen.settle();
    seen.click(label);
    seen.hand.key(held, false);
    seen.settle();
  };
  click_with(RealInput::kControl, "Atlas/L1/H2");
  click_with(RealInput::kShift, "Atlas/L2/H0");
  CHECK(seen.state().atlas.selected == "1.2,1.3,2.0");
  CHECK(values(seen.state().head) == std::pair<int64_t, int64_t>(0, 3));
  seen.drag("Atlas/L0/H0", 0.2, 0.2, 1.5, 1.5);
  CHECK(seen.state().atlas.selected == "0.0,0.1,1.0,1.1");
  seen.tap_with(RealInput::kControl, 'a');
  CHECK(std::count(seen.state().atlas.selected.begin(), seen.state().atlas.selected.end(), ',') ==
        15);
  seen.click("Atlas/Selected");
  seen.click("Selection/Copy as --pick \u2026");
  CHECK(seen.app.clipboard().starts_with("--pick 0.0,0.1,"));
  seen.click("Atlas/Clear");
  CHECK(seen.state().atlas.selected.empty());
  // Over the map the arrows move the map, with Shift the query.
  seen.tap('+');
  const MapRect rect = seen.state().rect;
  seen.point("Matrix/Map");
  seen.tap(RealInput::kDown);
  CHECK(seen.state().rect.q0 > rect.q0);
  seen.tap_with(RealInput::kShift, RealInput::kRight);
  REQUIRE(seen.state().query);
  const int64_t query = seen.state().query->tokens.front();
  seen.tap_with(RealInput::kShift, RealInput::kLeft);
  CHECK(seen.state().query->tokens.front() == query - 1);
  // One step of undo each, also where the map moves to what is picked.
  seen.app.act(action::SetRect{{0, 40, 0, 40}});
  seen.app.document()->history.end_gesture();
  const ViewState shown = seen.state();
  seen.tap_with(RealInput::kShift, RealInput::kRight);
  CHECK_FALSE(seen.state().rect == shown.rect);
  seen.hand.key(RealInput::kControl, true);
  seen.tap('z');
  seen.hand.key(RealInput::kControl, false);
  seen.settle();
  CHECK(seen.state() == shown);
}

TEST_CASE("a hand chooses words, plays the film, turns the volume and shows the curve") {
  SeenApp seen;
  seen.tap('k');
  REQUIRE(seen.wait_for(WaitFor::exact));
  seen.settle();
  seen.click("Words/1");
  CHECK(seen.state().words.chosen == std::vector<int64_t>{1});
  seen.tap(RealInput::kEscape);
  CHECK(seen.state().words.chosen.empty());
  REQUIRE(seen.wait_for(WaitFor::exact));
  seen.settle();
  seen.click("Query/t3");
  CHECK(seen.state().query);
  seen.click("Query/Film");
  seen.click("Film/One");
  CHECK(seen.state().film.one);
  seen.tap(RealInput::kEscape);
  seen.drag("Film/Time", 0.1, 0.5, 0.9, 0.5);
  CHECK(seen.state().film.moment > 3);
  seen.tap('v');
  REQUIRE(seen.state().volume.shown);
  REQUIRE(seen.wait_for(WaitFor::exact));
  seen.settle();
  const double azimuth = seen.state().volume.azimuth;
  seen.drag("Volume/Cells", 0.4, 0.5, 0.7, 0.5);
  CHECK(seen.state().volume.azimuth != azimuth);
  // A capture of one step has no strip until a curve is asked for.
  seen.point("Matrix/Map");
  seen.tap_with(RealInput::kControl, 'p');
  seen.hand.type("timeline temporal_score");
  seen.settle();
  seen.tap(RealInput::kReturn);
  CHECK(seen.state().timeline.metric == "temporal_score");
  seen.tap('T');
  CHECK_FALSE(seen.there("Timeline/Curve"));
  seen.tap('T');
  seen.click("Timeline/Curve");
  seen.click("Curve/entropy");
  CHECK(seen.state().timeline.metric == "entropy");
  seen.click("Timeline/Layers");
  REQUIRE(seen.wait_for(WaitFor::idle));
  seen.settle();
  seen.point("Timeline/Plot", 0.99);
  seen.hand.button(1, true);
  seen.hand.button(1, false);
  seen.settle();
  CHECK(seen.app.document()->picker.values(seen.state().head).layer == 3);
}

TEST_CASE("the middle button moves the map where a drag of the first one paints, in one step") {
  SeenApp seen;
  seen.app.act(action::SetRect{{100, 500, 200, 600}});
  seen.app.document()->history.end_gesture();
  seen.app.act(action::SetMask{{.shown = true, .text = "topk", .brush = MaskBrush::drop}});
  seen.settle();
  seen.point("Matrix/Map", 0.5, 0.5);
  seen.hand.button(2, true);
  seen.settle();
  seen.point("Matrix/Map", 0.6, 0.5);
  seen.point("Matrix/Map", 0.7, 0.5);
  seen.hand.button(2, false);
  seen.settle();
  CHECK(seen.state().rect.k0 < 180);
  CHECK(seen.state().rect.k0 > 60);
  CHECK(seen.state().rect.q0 == Approx(100).margin(2));
  CHECK(seen.state().mask.edits.empty());
  CHECK_FALSE(seen.state().query);
  seen.tap_with(RealInput::kControl, 'z');
  CHECK(seen.state().rect == MapRect{100, 500, 200, 600});
}

TEST_CASE("over one large frame the wheel goes through time, to the ends") {
  SeenApp seen;
  seen.app.act(action::PickQuery{{{200}}});
  seen.app.act(action::SetFilm{{.one = true}});
  REQUIRE(seen.wait_for(WaitFor::exact));
  seen.settle();
  const auto turn = [&](int button) {
    seen.hand.button(button, true);
    seen.hand.button(button, false);
    seen.settle();
  };
  seen.point("Query/t0");
  turn(4);
  CHECK(seen.state().film.moment == 0);
  turn(5);
  CHECK(seen.state().film.moment == 1);
  REQUIRE(seen.there("Query/t1"));
  for (int i = 0; i < 8; ++i) turn(5);
  CHECK(seen.state().film.moment == 6);
  turn(4);
  CHECK(seen.state().film.moment == 5);
}

TEST_CASE("a slip of a hand is told in the status line and stops nobody") {
  SeenApp seen;
  seen.point("Toolbar/Head");
  seen.tap_with(RealInput::kControl, 'c');
  CHECK_FALSE(seen.app.failed());
  CHECK(seen.app.notice() == "nothing was copied: the mouse is over no entry of the map");
  seen.tap('5');
  CHECK_FALSE(seen.app.failed());
  CHECK(seen.app.notice() == "pin 5: there is no pin 5");
  seen.tap('+');
  CHECK(seen.state().rect.q1 - seen.state().rect.q0 < 1024);
}

TEST_CASE("a hand drags the histogram, masks, looks at frames, and asks the palette") {
  SeenApp seen;
  seen.drag("Histogram/White", 0.5, 0.5, -4, 0.5);
  CHECK_FALSE(seen.state().range.automatic);
  seen.tap_with(RealInput::kControl, 'z');
  CHECK(seen.state().range.automatic);
  seen.click("Toolbar/Menu");
  seen.click("Panes/Frames");
  REQUIRE(seen.state().show_frames);
  REQUIRE(seen.wait_for(WaitFor::exact));
  seen.settle();
  seen.click("Frames/t2/t4");
  // Whole frames of 144 tokens behind 16 of text.
  CHECK(seen.state().rect == MapRect{16 + 2 * 144, 16 + 3 * 144, 16 + 4 * 144, 16 + 5 * 144});
  seen.tap('F');
  CHECK_FALSE(seen.state().show_frames);
  seen.tap('M');
  REQUIRE(seen.state().mask.shown);
  seen.click("Mask/Text");
  // Letters of a field are no keys of the window.
  seen.hand.type("temporal");
  seen.settle();
  seen.tap(RealInput::kReturn);
  CHECK(seen.state().mask.text == "temporal");
  CHECK_FALSE(seen.state().atlas.shown);
  seen.point("Matrix/Map");
  seen.tap_with(RealInput::kControl, 'p');
  REQUIRE(seen.there("Palette/Field"));
  seen.hand.type("l3 h2");
  seen.settle();
  seen.tap(RealInput::kReturn);
  CHECK_FALSE(seen.there("Palette/Field"));
  CHECK(seen.app.document()->picker.values(seen.state().head).layer == 3);
  CHECK(seen.app.document()->picker.values(seen.state().head).head == 2);
}

TEST_CASE("by hand: a double click on a ruler is one step, and none where all is seen already") {
  SeenApp seen;
  const MapRect all = seen.state().rect;
  seen.double_click("Matrix/Keys");
  CHECK(seen.state().rect == all);
  CHECK_FALSE(seen.app.document()->history.can_undo());
  seen.app.act(action::SetRect{{100, 300, 200, 400}});
  seen.settle();
  // Else its presses were the third and the fourth of one row.
  for (const double end = seen.app.seconds() + 1; seen.app.seconds() < end;) seen.app.step(0.05);
  seen.double_click("Matrix/Keys");
  CHECK(seen.state().rect == MapRect{100, 300, all.k0, all.k1});
  seen.tap_with(RealInput::kControl, 'z');
  CHECK(seen.state().rect == MapRect{100, 300, 200, 400});
}

TEST_CASE(
    "by hand: Z that is held is the magnifier's alone, and draws nothing while nothing moves") {
  SeenApp seen;
  seen.app.act(action::SetRect{{100, 300, 200, 400}});
  seen.point("Matrix/Map");
  REQUIRE(seen.wait_for(WaitFor::exact));
  seen.settle();
  const auto frames_in = [&](double seconds) {
    int frames = 0;
    for (const double end = seen.app.seconds() + seconds; seen.app.seconds() < end;) {
      if (seen.app.step(0.05)) ++frames;
    }
    return frames;
  };
  seen.hand.key('z', true);
  frames_in(1);
  CHECK(seen.there("Magnifier/Panel"));
  // The server repeats it by now.
  CHECK(frames_in(1) < 5);
  seen.hand.key(RealInput::kControl, true);
  frames_in(1);
  CHECK(seen.state().rect == MapRect{100, 300, 200, 400});
  CHECK(seen.there("Magnifier/Panel"));
  seen.hand.key('z', false);
  seen.hand.key(RealInput::kControl, false);
  seen.settle();
  CHECK_FALSE(seen.there("Magnifier/Panel"));
}
