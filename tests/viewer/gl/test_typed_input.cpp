// Needs a display: run by ctest under xvfb-run. Fields and the palette, typed into by real
// keys, which come through the X server.
#include <algorithm>

#include "tests/viewer/gl/seen_app.h"

using namespace attnscope;
using namespace attnscope::test;

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
  // It is the first of the list now.
  seen.app.act(action::SelectHead{before.head});
  open();
  seen.hand.tap(RealInput::kDown);
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

TEST_CASE("an entry that was copied is pasted into the field of the place, and is gone to") {
  SeenApp seen;
  seen.app.act(action::SelectHead{{2, 0, 1}});
  seen.app.act(action::SetRect{{300, 400, 500, 600}});
  seen.settle();
  const auto copy = [&] {
    seen.point("Matrix/Map", 0.25, 0.75);
    REQUIRE(seen.wait_for(WaitFor::exact));
    seen.settle();
    seen.tap_with(RealInput::kControl, 'c');
    REQUIRE_FALSE(seen.app.failed());
    return seen.app.clipboard();
  };
  const auto paste = [&](const std::string& text) {
    ImGui::SetClipboardText(text.c_str());
    seen.click("Toolbar/Place");
    seen.tap_with(RealInput::kControl, 'v');
    seen.tap(RealInput::kReturn);
  };
  const std::string copied = copy();
  REQUIRE(copied.find("layer 2") != std::string::npos);
  const MapPoint there = seen.app.frame()->readout()->point;
  CHECK(copied.find("row " + std::to_string(there.query)) != std::string::npos);
  seen.app.act(action::SelectHead{{1, 0, 3}});
  seen.app.act(action::SetRect{{0, 40, 0, 40}});
  seen.settle();
  const ViewState before = seen.state();
  paste(copied);
  CHECK(seen.state().head == HeadId{2, 0, 1});
  REQUIRE(seen.state().query);
  CHECK(seen.state().query->tokens == std::vector<int64_t>{there.query});
  const MapRect& rect = seen.state().rect;
  CHECK(std::abs((rect.q0 + rect.q1) / 2 - static_cast<double>(there.query) - 0.5) < 1e-6);
  CHECK(std::abs((rect.k0 + rect.k1) / 2 - static_cast<double>(there.key) - 0.5) < 1e-6);
  CHECK(rect.q1 - rect.q0 == 40);
  seen.tap_with(RealInput::kControl, 'z');
  CHECK(seen.state() == before);
  // Of side B it shows that head there, whatever A is.
  seen.app.act(action::SetOther{{3, 0, 2}});
  seen.app.show_other(true);
  const std::string of_other = copy();
  seen.app.show_other(false);
  REQUIRE(of_other.starts_with("B: "));
  seen.app.act(action::DropOther{});
  seen.settle();
  paste(of_other);
  CHECK(seen.state().head == before.head);
  REQUIRE(seen.state().other);
  CHECK(seen.state().other->head == HeadId{3, 0, 2});
  // What this capture has not is told below the field.
  const ViewState last = seen.state();
  for (const char* none : {"layer 9 \u00b7 head 0: q 1 \u2192 k 2, row 1, column 2",
                           "row 1, column 2000", "h: q 1 \u2192 k 2, row 1024, column 0"}) {
    INFO(none);
    paste(none);
    CHECK(seen.state() == last);
    seen.tap(RealInput::kEscape);
  }
}
