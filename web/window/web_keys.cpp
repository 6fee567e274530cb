#include "web/window/web_keys.h"

#include <imgui.h>

#include <array>
#include <cstddef>

namespace attnscope {
namespace {

struct NamedKey {
  std::string_view name;  ///< KeyboardEvent.key
  Key key;
  int imgui;
};
constexpr std::array kNamed{NamedKey{"ArrowLeft", Key::left, ImGuiKey_LeftArrow},
                            NamedKey{"ArrowRight", Key::right, ImGuiKey_RightArrow},
                            NamedKey{"ArrowUp", Key::up, ImGuiKey_UpArrow},
                            NamedKey{"ArrowDown", Key::down, ImGuiKey_DownArrow},
                            NamedKey{"PageUp", Key::page_up, ImGuiKey_PageUp},
                            NamedKey{"PageDown", Key::page_down, ImGuiKey_PageDown},
                            NamedKey{"Home", Key::home, ImGuiKey_Home},
                            NamedKey{"End", Key::end, ImGuiKey_End},
                            NamedKey{"Insert", Key::insert, ImGuiKey_Insert},
                            NamedKey{"Delete", Key::del, ImGuiKey_Delete},
                            NamedKey{"Backspace", Key::backspace, ImGuiKey_Backspace},
                            NamedKey{"Enter", Key::enter, ImGuiKey_Enter},
                            NamedKey{"Escape", Key::escape, ImGuiKey_Escape},
                            NamedKey{"Tab", Key::tab, ImGuiKey_Tab},
                            NamedKey{" ", Key::space, ImGuiKey_Space}};

constexpr std::array kLetters{std::pair{'A', ImGuiKey_A}, std::pair{'C', ImGuiKey_C},
                              std::pair{'V', ImGuiKey_V}, std::pair{'X', ImGuiKey_X},
                              std::pair{'Y', ImGuiKey_Y}, std::pair{'Z', ImGuiKey_Z}};

const NamedKey* named(const WebKey& key) {
  for (const NamedKey& known : kNamed) {
    if (known.name == key.key) return &known;
  }
  return nullptr;
}

/// "KeyA" and "Digit1" are 'A' and '1'; 0: another one.
char letter_of_code(std::string_view code) {
  for (const std::string_view before : {"Key", "Digit"}) {
    if (code.size() == before.size() + 1 && code.substr(0, before.size()) == before) {
      return code.back();
    }
  }
  return 0;
}

/// The one ASCII sign that it types; 0: it types another one, or none.
char sign(const WebKey& key) {
  if (key.key.size() != 1 || key.key[0] <= ' ' || key.key[0] >= 127) return 0;
  const char c = key.key[0];
  return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
}

}  // namespace

std::optional<KeyChord> chord_of_web_key(const WebKey& key) {
  KeyChord chord;
  chord.ctrl = key.ctrl || key.meta;
  chord.shift = key.shift;
  chord.alt = key.alt;
  if (const NamedKey* const known = named(key)) {
    chord.key = known->key;
    return normalised(chord);
  }
  if (key.key.size() >= 2 && key.key.size() <= 3 && key.key[0] == 'F') {
    int number = 0;
    for (const char c : key.key.substr(1)) {
      if (c < '0' || c > '9') return std::nullopt;
      number = 10 * number + (c - '0');
    }
    if (number < 1 || number > 12) return std::nullopt;
    chord.key = static_cast<Key>(static_cast<int>(Key::f1) + number - 1);
    return normalised(chord);
  }
  char typed = sign(key);
  // With Alt some systems type signs of their own; other scripts have no letter of ours there.
  if (typed == 0 || chord.alt) {
    const bool one_letter = !key.key.empty() && static_cast<unsigned char>(key.key[0]) >= 0x80;
    if (typed != 0 || one_letter) {
      if (const char letter = letter_of_code(key.code)) typed = letter;
    }
  }
  if (typed == 0) return std::nullopt;
  chord.key = printable_key(typed);
  return normalised(chord);
}

std::string_view text_of_web_key(const WebKey& key) {
  if (key.ctrl != key.alt || key.meta || key.key.empty()) {
    // Ctrl and Alt together are how some keyboards type signs (AltGr); Alt alone types them on
    // others.
    const bool typed_with_alt = key.alt && !key.ctrl && !key.meta && !key.key.empty() &&
                                static_cast<unsigned char>(key.key[0]) >= 0x80;
    if (!typed_with_alt) return {};
  }
  // Names of keys are longer than one letter.
  size_t letters = 0;
  for (const char c : key.key) letters += (static_cast<unsigned char>(c) & 0xc0) != 0x80 ? 1 : 0;
  return letters == 1 && static_cast<unsigned char>(key.key[0]) >= ' ' ? key.key
                                                                       : std::string_view();
}

int imgui_key_of_web_key(const WebKey& key) {
  if (const NamedKey* const known = named(key)) return known->imgui;
  const auto chord = chord_of_web_key(key);
  if (!chord) return -1;
  for (const auto& [letter, number] : kLetters) {
    if (chord->key == printable_key(letter)) return number;
  }
  return -1;
}

}  // namespace attnscope
