#include <cmath>
#include <set>

#include "tests/support/catch.h"
#include "tests/support/fake_captures.h"
#include "viewer/commands/command_actions.h"
#include "viewer/commands/commands.h"
#include "viewer/view/view_actions.h"

using namespace attnscope;
using namespace attnscope::test;

TEST_CASE("chords are read and written") {
  CHECK(parse_chord("Ctrl+Z") == KeyChord{printable_key('Z'), true, false, false});
  CHECK(parse_chord("ctrl+shift+z") == KeyChord{printable_key('Z'), true, true, false});
  CHECK(parse_chord("alt+left") == KeyChord{Key::left, false, false, true});
  CHECK(parse_chord("Alt+←") == parse_chord("Alt+Left"));
  CHECK(parse_chord("Esc").key == Key::escape);
  CHECK(parse_chord("F12").key == Key::f12);
  CHECK(parse_chord("F1").key == Key::f1);
  CHECK(parse_chord("+") == KeyChord{printable_key('+')});
  CHECK(parse_chord("Ctrl++") == KeyChord{printable_key('+'), true, false, false});
  CHECK(parse_chord("Shift+Tab").shift);
  // A sign is a sign, however it is typed.
  CHECK(parse_chord("Shift+[") == parse_chord("{"));
  CHECK(parse_chord("Shift+{") == parse_chord("{"));
  CHECK(parse_chord("Shift+/") == parse_chord("?"));
  CHECK(parse_chord("Shift+=") == parse_chord("+"));
  CHECK(parse_chord("Shift+A") != parse_chord("A"));
  CHECK(normalised({printable_key('a')}) == parse_chord("A"));
  for (const char* text : {"Ctrl+Z", "Ctrl+Alt+Shift+F7", "[", "{", "+", "Ctrl++", "Alt+PageDown",
                           "Space", "Shift+Left"}) {
    CHECK(chord_text(parse_chord(text)) == text);
  }
}

TEST_CASE("what is no chord is refused with the part that is wrong") {
  CHECK(has(usage_text([] { parse_chord("Crtl+Z"); }), "\"Crtl\" is no key, did you mean Ctrl?"));
  CHECK(has(usage_text([] { parse_chord("Ctrl+Lefft"); }), "did you mean Left?"));
  CHECK(has(usage_text([] { parse_chord("Ctrl+Ctrl+Z"); }), "twice"));
  for (const char* text : {"", "Ctrl+", "F13", "F0", "ZZ", "Hyper+Z", "é"}) {
    INFO(text);
    CHECK(has(usage_text([&] { parse_chord(text); }), "no key"));
  }
}

TEST_CASE("every command has a name, help and keys of its own") {
  std::set<std::string_view> names;
  std::set<CommandId> ids;
  for (const ViewCommand& command : commands()) {
    CHECK(names.insert(command.name).second);
    CHECK(ids.insert(command.id).second);
    CHECK_FALSE(command.help.empty());
    REQUIRE_FALSE(command.chords.empty());
    for (const std::string_view chord : command.chords) {
      INFO(chord);
      CHECK(command_on(parse_chord(chord)) == command.id);
    }
    CHECK(command_of(command.id).name == command.name);
  }
  CHECK(ids.size() == static_cast<size_t>(CommandId::help) + 1);
  CHECK(command_on(parse_chord("Shift+]")) == CommandId::next_layer);
  CHECK(command_on(parse_chord("s")) == CommandId::pan_down);
  CHECK(command_on(parse_chord("Ctrl+S")) == CommandId::save_session);
  CHECK_FALSE(command_on(parse_chord("Ctrl+W")));
  const std::string table = key_table();
  CHECK(has(table, "| `Ctrl+Z`, `Alt+Left` | one step back |"));
  CHECK(has(table, "| `X` | next difference"));
  CHECK_FALSE(has(table, "pin the token"));
}

TEST_CASE("keys change the state") {
  const TemporaryFolder folder;
  write_video_capture(folder);
  const Capture capture = Capture::open(folder.path());
  const HeadPicker picker(map_sources(capture));
  const ViewLimits limits = ViewLimits::of(map_sources(capture));
  ViewState state = opened_view(limits);
  const auto press = [&](const char* chord) {
    const auto id = command_on(parse_chord(chord));
    REQUIRE(id);
    const auto action = command_action(*id, state, picker);
    if (action) state = apply_action(state, *action, limits);
    return action.has_value();
  };
  CHECK(press("+"));
  CHECK(state.rect.q1 - state.rect.q0 == Approx(26 / std::sqrt(2)));
  CHECK((state.rect.k0 + state.rect.k1) / 2 == Approx(13));
  const MapRect before = state.rect;
  CHECK(press("Right"));
  CHECK(state.rect.k0 - before.k0 == Approx((before.k1 - before.k0) / 8));
  CHECK(state.rect.q0 == before.q0);
  CHECK(press("A"));
  CHECK(press("W"));
  CHECK(state.rect.q0 < before.q0);
  CHECK(press("S"));
  CHECK(state.rect.q0 == Approx(before.q0));
  CHECK(press("-"));
  CHECK(press("0"));
  CHECK(state.rect == MapRect{0, 26, 0, 26});
  CHECK(press("]"));
  CHECK(state.head.head == 1);
  CHECK(press("["));
  CHECK_FALSE(press("["));
  CHECK(press("}"));
  CHECK(press("."));
  CHECK(picker.values(state.head) == HeadValues{10, 3, CallKind::joint, "uncond", 0, 0});
  CHECK(press("{"));
  CHECK(press(","));
  CHECK(state.head == HeadId{});
  CHECK(press("M"));
  CHECK(state.pool == Pool::mean);
  CHECK(press("R"));
  CHECK(state.reverse);
  CHECK(press("H"));
  CHECK_FALSE(state.show_histogram);
  for (const ScaleKind scale :
       {ScaleKind::linear, ScaleKind::sqrt, ScaleKind::symlog, ScaleKind::log2}) {
    CHECK(press("L"));
    CHECK(state.scale == scale);
  }
  state.product = ViewProduct::logits;
  state.scale = ScaleKind::symlog;
  CHECK(press("L"));
  CHECK(state.scale == ScaleKind::linear);
  CHECK(press("C"));
  CHECK(state.colormap == "cividis");
  state.colormap = "grey";
  CHECK(press("C"));
  CHECK(state.colormap == "viridis");
  CHECK_FALSE(command_action(CommandId::open, state, picker));
}
