// Needs a display: run by ctest under xvfb-run. Each pane once by a real mouse and real keys, which
// come through the X server.
#include <algorithm>

#include "tests/support/catch.h"
#include "tests/viewer/gl/hidden_app.h"
#include "tests/viewer/gl/real_input.h"
#include "viewer/app/app_script_host.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

/// A window that is seen, with the sample in it, and a hand.
struct SeenApp : HiddenApp {
  SeenApp() : HiddenApp(false, seen_window()) {
    app.set_script_host(std::make_unique<AppScriptHost>(app, false, true));
    open_sample();
    REQUIRE(wait_for(WaitFor::exact));
    settle();
  }

  static Window::Settings seen_window() {
    Window::Settings settings;
    settings.size = WindowSize{1200, 760};
    return settings;
  }

  ScreenRect place(const std::string& label) {
    const auto rect = app.labels().find(label);
    INFO(label);
    REQUIRE(rect);
    return *rect;
  }
  /// Moves to a place within what has this label, in shares of its sides.
  void point(const std::string& label, double across = 0.5, double down = 0.5) {
    const ScreenRect rect = place(label);
    int left = 0, top = 0;
    glfwGetWindowPos(glfwGetCurrentContext(), &left, &top);
    hand.move(left + static_cast<int>(rect.x0 + (rect.x1 - rect.x0) * static_cast<float>(across)),
              top + static_cast<int>(rect.y0 + (rect.y1 - rect.y0) * static_cast<float>(down)));
    settle();
  }
  void click(const std::string& label, int button = 1) {
    point(label);
    hand.button(button, true);
    hand.button(button, false);
    settle();
  }
  void double_click(const std::string& label) {
    point(label, 0.3);
    for (const bool down : {true, false, true, false}) hand.button(1, down);
    settle();
  }
  void drag(const std::string& label, double x0, double y0, double x1, double y1) {
    point(label, x0, y0);
    hand.button(1, true);
    settle();
    point(label, (x0 + x1) / 2, (y0 + y1) / 2);
    point(label, x1, y1);
    hand.button(1, false);
    settle();
  }
  void tap(uint32_t symbol) {
    hand.tap(symbol);
    settle();
  }
  void tap_with(uint32_t held, uint32_t symbol) {
    hand.key(held, true);
    hand.tap(symbol);
    hand.key(held, false);
    settle();
  }
  bool there(const std::string& label) { return app.labels().find(label).has_value(); }

  RealInput hand;
};

}  // namespace

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

TEST_CASE("a command is pasted into the field of the place, and the order is at hand when narrow") {
  SeenApp seen;
  seen.app.act(action::SelectHead{{2, 0, 0}});
  seen.settle();
  const std::string copied =
      "attnscope view /elsewhere/moving-shapes --layers 1 --heads 2 --query 3,5,6 --zoom 0,64,8,72";
  ImGui::SetClipboardText(copied.c_str());
  seen.click("Toolbar/Place");
  seen.tap_with(RealInput::kControl, 'v');
  seen.tap(RealInput::kReturn);
  seen.settle();
  CHECK(seen.app.document()->picker.values(seen.state().head).layer == 1);
  CHECK(seen.app.document()->picker.values(seen.state().head).head == 2);
  CHECK(seen.state().rect == MapRect{0, 64, 8, 72});
  REQUIRE(seen.state().query);
  // As the window copies it itself.
  seen.tap_with(RealInput::kControl, 'l');
  const std::string own = seen.app.clipboard();
  const ViewState there = seen.state();
  seen.app.act(action::Fit{});
  seen.app.act(action::DropQuery{});
  ImGui::SetClipboardText(own.c_str());
  seen.settle();
  seen.click("Toolbar/Place");
  seen.tap_with(RealInput::kControl, 'v');
  seen.tap(RealInput::kReturn);
  seen.settle();
  CHECK(seen.state() == there);
  // Of another capture it leads nowhere.
  ImGui::SetClipboardText("attnscope view other --layers 0");
  seen.click("Toolbar/Place");
  seen.tap_with(RealInput::kControl, 'v');
  seen.tap(RealInput::kReturn);
  seen.settle();
  CHECK(seen.state() == there);
  seen.tap(RealInput::kEscape);
  for (const WindowSize size : {WindowSize{640, 480}, WindowSize{320, 240}}) {
    REQUIRE(seen.force_size(size));
    INFO(size.width << ", a map of " << seen.place("Matrix/Map").width());
    CHECK(seen.there("Matrix/Order"));
  }
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

TEST_CASE("a quick hand loses no key of the palette, however few frames are drawn meanwhile") {
  SeenApp seen;
  seen.point("Matrix/Map");
  const MapRect all = seen.state().rect;
  const auto layer = [&] { return seen.app.document()->picker.values(seen.state().head).layer; };
  // All of it before the next frame, as where that one is slow.
  const auto at_once = [&](const std::string& text, uint32_t last = RealInput::kReturn) {
    seen.hand.key(RealInput::kControl, true);
    seen.hand.tap('p');
    seen.hand.key(RealInput::kControl, false);
    seen.hand.type(text);
    seen.hand.tap(last);
  };
  at_once("layer 2");
  seen.settle();
  CHECK(layer() == 2);
  CHECK_FALSE(seen.there("Palette/Field"));
  at_once("3,5,11");
  seen.settle();
  CHECK(seen.state().query->tokens == std::vector<int64_t>{16 + (3 * 12 + 5) * 12 + 11});
  // Words behind each other, and keys of the window behind them.
  at_once("layer 3");
  at_once("colormap magma");
  seen.hand.tap(']');
  seen.settle();
  CHECK(layer() == 3);
  CHECK(seen.state().colormap == "magma");
  CHECK(seen.app.document()->picker.values(seen.state().head).head == 1);
  // A line is mended while it is typed.
  seen.hand.key(RealInput::kControl, true);
  seen.hand.tap('p');
  seen.hand.key(RealInput::kControl, false);
  seen.hand.type("layr");
  seen.hand.tap(RealInput::kBackspace);
  seen.hand.type("er 1x");
  seen.hand.tap(RealInput::kBackspace);
  seen.hand.tap(RealInput::kReturn);
  seen.settle();
  CHECK(layer() == 1);
  // With frames in between, anywhere.
  for (int every = 1; every < 6; ++every) {
    const std::string line = "layer " + std::to_string(every % 2 == 0 ? 2 : 3);
    seen.hand.key(RealInput::kControl, true);
    seen.hand.tap('p');
    seen.hand.key(RealInput::kControl, false);
    for (size_t i = 0; i < line.size(); ++i) {
      if (i % static_cast<size_t>(every) == 0) seen.app.step(0);
      seen.hand.tap(static_cast<uint8_t>(line[i]));
    }
    seen.hand.tap(RealInput::kReturn);
    seen.settle();
    INFO(every);
    CHECK(layer() == (every % 2 == 0 ? 2 : 3));
    CHECK_FALSE(seen.there("Palette/Field"));
  }
  CHECK(seen.state().rect == all);
}

TEST_CASE("Enter in an empty field of the palette does nothing, on a marked line what it says") {
  SeenApp seen;
  const ViewState before = seen.state();
  const auto open = [&] {
    seen.hand.key(RealInput::kControl, true);
    seen.hand.tap('p');
    seen.hand.key(RealInput::kControl, false);
  };
  open();
  seen.hand.tap(RealInput::kReturn);
  seen.hand.type("  ");
  seen.hand.tap(RealInput::kReturn);
  seen.settle();
  CHECK(seen.there("Palette/Field"));
  CHECK(seen.state() == before);
  // The field has the keys still.
  seen.hand.type("layer 2");
  seen.hand.tap(RealInput::kReturn);
  seen.settle();
  CHECK_FALSE(seen.there("Palette/Field"));
  CHECK(seen.app.document()->picker.values(seen.state().head).layer == 2);
  // A line that cannot be done waits to be mended.
  open();
  seen.hand.type("layer 9");
  seen.hand.tap(RealInput::kReturn);
  seen.settle();
  CHECK(seen.there("Palette/Field"));
  seen.hand.tap(RealInput::kEscape);
  seen.hand.tap('+');
  seen.settle();
  CHECK_FALSE(seen.there("Palette/Field"));
  CHECK_FALSE(seen.state().rect == before.rect);
}

TEST_CASE("a click that gives a field the keys comes before what is typed behind it") {
  SeenApp seen;
  seen.tap('M');
  REQUIRE(seen.state().mask.shown);
  seen.point("Mask/Text");
  seen.hand.button(1, true);
  seen.hand.button(1, false);
  seen.hand.type("temporal");
  seen.hand.tap(RealInput::kReturn);
  seen.hand.tap('p');
  seen.settle();
  CHECK(seen.state().mask.text == "temporal");
  CHECK_FALSE(seen.state().atlas.shown);
  CHECK(seen.app.notice() == "the mouse is over no entry of the map: there is nothing to pin");
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

TEST_CASE("a hand types where to go, and copies where it is") {
  SeenApp seen;
  const ViewState before = seen.state();
  seen.click("Toolbar/Place");
  seen.hand.type("L1 H2; q 2,3,4; 160-304");
  seen.settle();
  seen.tap(RealInput::kReturn);
  const HeadValues values = seen.app.document()->picker.values(seen.state().head);
  CHECK(values.layer == 1);
  CHECK(values.head == 2);
  CHECK(seen.state().rect == MapRect{160, 304, 160, 304});
  REQUIRE(seen.state().query);
  const std::string told = "L1 H2 \u00b7 q 2,3,4 \u00b7 160\u2013304";
  seen.click("Toolbar/Place");
  seen.tap_with(RealInput::kControl, 'c');
  CHECK(seen.app.clipboard() == told);
  seen.tap(RealInput::kEscape);
  const ViewState there = seen.state();
  // A place that is none stays as it was typed, with why below it.
  seen.click("Toolbar/Place");
  seen.hand.type("L9 H2");
  seen.settle();
  seen.tap(RealInput::kReturn);
  const auto says = [&](const std::string& part) {
    const auto& texts = seen.app.labels().texts();
    return std::any_of(texts.begin(), texts.end(), [&](const WrittenText& text) {
      return text.whole.find(part) != std::string::npos;
    });
  };
  CHECK(says("layer 9: not in this capture"));
  CHECK(seen.state() == there);
  seen.tap_with(RealInput::kControl, 'a');
  seen.tap_with(RealInput::kControl, 'c');
  CHECK(seen.app.clipboard() == "L9 H2");
  seen.tap(RealInput::kEscape);
  CHECK_FALSE(says("layer 9: not in this capture"));
  CHECK(seen.state() == there);
  // All of a place is one step of undo.
  seen.tap_with(RealInput::kControl, 'z');
  CHECK(seen.state() == before);
}

TEST_CASE("a hand types an end of the colours") {
  SeenApp seen;
  const auto type_end = [&](const char* label, const std::string& text, uint32_t last) {
    seen.click(label);
    seen.hand.type(text);
    seen.settle();
    seen.tap(last);
  };
  type_end("Histogram/High", "0.5", RealInput::kReturn);
  CHECK_FALSE(seen.state().range.automatic);
  CHECK(seen.state().range.high == 0.5);
  const ColourRange range = seen.state().range;
  type_end("Histogram/Low", "1e-3", RealInput::kEscape);
  CHECK(seen.state().range == range);
  CHECK_FALSE(seen.there("Histogram/Field"));
  type_end("Histogram/Low", "1e-3", RealInput::kReturn);
  CHECK(seen.state().range == ColourRange{false, 1e-3, 0.5});
  for (const auto& [text, why] :
       {std::pair{"much", "expected a number"}, std::pair{"0.7", "expected less than 0.5"},
        std::pair{"0", "a log scale needs an end above 0"}}) {
    INFO(text);
    type_end("Histogram/Low", text, RealInput::kReturn);
    const auto& texts = seen.app.labels().texts();
    CHECK(std::any_of(texts.begin(), texts.end(), [&](const WrittenText& each) {
      return each.whole.find(why) != std::string::npos;
    }));
    CHECK(seen.there("Histogram/Field"));
    seen.tap(RealInput::kEscape);
    CHECK_FALSE(seen.there("Histogram/Field"));
  }
  CHECK(seen.state().range == ColourRange{false, 1e-3, 0.5});
  seen.tap_with(RealInput::kControl, 'z');
  seen.tap_with(RealInput::kControl, 'z');
  CHECK(seen.state().range.automatic);
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
