// Keys in their order, whatever comes within one frame: to a field that takes text, to the window.
#include <string>
#include <vector>

#include "tests/support/catch.h"
#include "viewer/screen/key_events.h"

using namespace attnscope;

namespace {

using What = KeyEvent::What;

/// A window with a palette, as far as its keys go, that writes down who got what: letters of text
/// as they are, keys of the field in <>, keys of the window in (), "|" behind each frame.
struct Keyboard {
  KeyEvents events;
  std::string told;
  bool field = false;    ///< takes text
  bool opening = false;  ///< the field is there after the next frame
  bool closing = false;  ///< and gone then

  void push(What what, const std::string& chord, const std::string& name, bool makes_command) {
    const auto parsed = chord.empty() ? std::nullopt : std::optional(parse_chord(chord));
    events.push({what, parsed, [this, name, what] { tell(name, what); }, makes_command});
  }
  void tell(const std::string& name, What what) {
    if (what == What::text) told += name;
    if (what == What::down && name.size() > 1 && name != "Ctrl") told += "<" + name + ">";
  }
  void tap(const std::string& chord) {
    push(What::down, chord, chord, false);
    push(What::up, chord, chord, false);
  }
  void type(const std::string& text) {
    for (const char c : text) {
      push(What::down, c == ' ' ? "Space" : std::string(1, c), "", false);
      push(What::text, "", std::string(1, c), false);
      push(What::up, c == ' ' ? "Space" : std::string(1, c), "", false);
    }
  }
  void tap_with_ctrl(const std::string& key) {
    push(What::down, "", "Ctrl", true);
    tap("Ctrl+" + key);
    push(What::up, "", "Ctrl", true);
  }
  void click() { events.push(KeyEvents::click()); }

  bool press(const KeyChord& chord) {
    told += "(" + chord_text(chord) + ")";
    const bool palettes = field;
    if (chord == parse_chord("Ctrl+P")) opening = true;
    if (field && (chord.key == Key::enter || chord.key == Key::escape)) closing = true;
    return palettes;
  }
  void hand_out() {
    events.hand_out({[this] { return opening || closing; }, [this] { return field; },
                     [this](const KeyChord& chord) { return press(chord); },
                     [](const KeyChord&) {}});
  }
  void frame(bool mouse_done = true) {
    hand_out();
    events.frame_done(mouse_done);
    if (opening) field = true;
    if (closing) field = false;
    opening = closing = false;
    told += "|";
  }
  std::string drawn() {
    for (int i = 0; i < 60 && !events.done(); ++i) frame();
    CHECK(events.done());
    return told;
  }
};

}  // namespace

TEST_CASE("letters behind the key that opens a field are the field's, and all in one frame") {
  Keyboard keys;
  keys.tap_with_ctrl("P");
  keys.type("layer 2");
  keys.tap("Enter");
  keys.type("m");
  CHECK(keys.drawn() == "(Ctrl+P)<Ctrl+P>|layer 2|(Enter)|(M)|");
}

TEST_CASE("a field gets its letters and keys in their order, one key a frame") {
  Keyboard keys;
  keys.field = true;
  keys.type("lax");
  keys.tap("Backspace");
  keys.tap("Backspace");
  keys.type("yer");
  keys.tap_with_ctrl("A");
  keys.type("b");
  CHECK(keys.drawn() == "lax|<Backspace>||<Backspace>|yer|<Ctrl+A>|b|");
}

TEST_CASE("keys beside a field are the window's and stand between its letters") {
  Keyboard keys;
  keys.field = true;
  keys.type("la");
  for (int i = 0; i < 3; ++i) keys.tap("Down");
  keys.type("y");
  keys.tap("Escape");
  keys.type("a");
  CHECK(keys.drawn() == "la|(Down)(Down)(Down)|y|(Escape)|(A)|");
}

TEST_CASE("without a field all keys are the window's at once, and their letters nobody's") {
  Keyboard keys;
  keys.type("ab");
  keys.push(What::down, "", "plus", false);
  keys.push(What::text, "+", "+", false);
  keys.push(What::down, "Up", "Up", false);
  keys.push(What::repeat, "Up", "Up", false);
  keys.push(What::up, "Up", "Up", false);
  keys.hand_out();
  CHECK(keys.told == "(A)(B)<plus>(+)(Up)<Up>(Up)");
  CHECK(keys.events.done());
}

TEST_CASE("a repeat belongs to the chord that went down") {
  Keyboard keys;
  keys.push(What::down, "Z", "", false);
  keys.push(What::text, "", "z", false);
  keys.hand_out();
  CHECK(keys.told == "(Z)");
  // What lasts while a key is held is not begun again, and costs no frame.
  keys.push(What::repeat, "Z", "", false);
  keys.push(What::text, "", "z", false);
  CHECK(keys.events.done());
  // Held with Ctrl too, Z takes nothing back.
  keys.push(What::down, "", "Ctrl", true);
  keys.push(What::repeat, "Ctrl+Z", "", false);
  keys.hand_out();
  CHECK(keys.told == "(Z)");
  keys.push(What::up, "Ctrl+Z", "", false);
  keys.push(What::down, "Ctrl+Z", "", false);
  keys.push(What::repeat, "Ctrl+Z", "", false);
  // Without Ctrl it is not the magnifier's.
  keys.push(What::up, "", "Ctrl", true);
  keys.push(What::repeat, "Z", "", false);
  keys.hand_out();
  CHECK(keys.told == "(Z)(Ctrl+Z)(Ctrl+Z)");
}

TEST_CASE("a field gets the letters of a key that is held") {
  Keyboard keys;
  keys.field = true;
  keys.push(What::down, "Z", "", false);
  keys.push(What::text, "", "z", false);
  keys.frame();
  for (int i = 0; i < 2; ++i) {
    keys.push(What::repeat, "Z", "", false);
    keys.push(What::text, "", "z", false);
  }
  CHECK(keys.drawn() == "z|zz|");
}

TEST_CASE("the letter of a key that opened a field is no text of it") {
  Keyboard keys;
  keys.push(What::down, "F", "F", false);
  keys.hand_out();
  keys.field = true;
  keys.push(What::text, "", "f", false);
  keys.type("g");
  CHECK(keys.drawn() == "(F)g|");
}

TEST_CASE("keys behind a click come after the frames that have it") {
  Keyboard keys;
  keys.type("a");
  keys.click();
  keys.type("b");
  keys.frame(false);
  CHECK(keys.told == "(A)|");
  // The click gave a field the keys.
  keys.field = true;
  keys.frame(true);
  keys.frame(true);
  CHECK(keys.told == "(A)||b|");
}

TEST_CASE("keys behind a move of the mouse come when it is known what it points at") {
  Keyboard keys;
  for (const std::string letter : {"a", "b"}) {
    for (int i = 0; i < 3; ++i) keys.events.push(KeyEvents::move());
    keys.type(letter);
  }
  // A mouse that goes on moving stops no key.
  CHECK(keys.drawn() == "||(A)(B)|");
}
