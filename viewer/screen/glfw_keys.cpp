#include "viewer/screen/glfw_keys.h"

// Keys alone: OpenGL's declarations are epoxy's, which stands before them or not at all.
#define GLFW_INCLUDE_NONE
#include <GLFW/glfw3.h>
#undef GLFW_INCLUDE_NONE

#include <array>
#include <utility>

namespace attnscope {
namespace {

constexpr std::array kNamed{std::pair{GLFW_KEY_LEFT, Key::left},
                            std::pair{GLFW_KEY_RIGHT, Key::right},
                            std::pair{GLFW_KEY_UP, Key::up},
                            std::pair{GLFW_KEY_DOWN, Key::down},
                            std::pair{GLFW_KEY_PAGE_UP, Key::page_up},
                            std::pair{GLFW_KEY_PAGE_DOWN, Key::page_down},
                            std::pair{GLFW_KEY_HOME, Key::home},
                            std::pair{GLFW_KEY_END, Key::end},
                            std::pair{GLFW_KEY_INSERT, Key::insert},
                            std::pair{GLFW_KEY_DELETE, Key::del},
                            std::pair{GLFW_KEY_BACKSPACE, Key::backspace},
                            std::pair{GLFW_KEY_ENTER, Key::enter},
                            std::pair{GLFW_KEY_KP_ENTER, Key::enter},
                            std::pair{GLFW_KEY_ESCAPE, Key::escape},
                            std::pair{GLFW_KEY_TAB, Key::tab},
                            std::pair{GLFW_KEY_SPACE, Key::space}};

/// GLFW's codes of printable keys are the ASCII codes of a US keyboard.
bool is_letter_or_digit(int key) {
  return (key >= GLFW_KEY_A && key <= GLFW_KEY_Z) || (key >= GLFW_KEY_0 && key <= GLFW_KEY_9);
}

}  // namespace

std::optional<KeyChord> chord_of_key(int key, int mods) {
  KeyChord chord;
  chord.ctrl = (mods & GLFW_MOD_CONTROL) != 0;
  chord.shift = (mods & GLFW_MOD_SHIFT) != 0;
  chord.alt = (mods & GLFW_MOD_ALT) != 0;
  for (const auto& [code, named] : kNamed) {
    if (code != key) continue;
    chord.key = named;
    return normalised(chord);
  }
  if (key >= GLFW_KEY_F1 && key <= GLFW_KEY_F12) {
    chord.key = static_cast<Key>(static_cast<int>(Key::f1) + key - GLFW_KEY_F1);
    return normalised(chord);
  }
  const bool printable = key > ' ' && key < 127;
  if (!printable || (!is_letter_or_digit(key) && !chord.ctrl && !chord.alt)) return std::nullopt;
  // Shift and a digit make a sign, which comes as a character.
  if (key >= GLFW_KEY_0 && key <= GLFW_KEY_9 && chord.shift && !chord.ctrl && !chord.alt) {
    return std::nullopt;
  }
  chord.key = printable_key(static_cast<char>(key));
  return normalised(chord);
}

bool makes_command(int key) {
  return key == GLFW_KEY_LEFT_CONTROL || key == GLFW_KEY_RIGHT_CONTROL ||
         key == GLFW_KEY_LEFT_ALT || key == GLFW_KEY_RIGHT_ALT || key == GLFW_KEY_LEFT_SUPER ||
         key == GLFW_KEY_RIGHT_SUPER;
}

std::optional<KeyChord> chord_of_character(unsigned code) {
  if (code <= ' ' || code >= 127) return std::nullopt;
  const auto c = static_cast<char>(code);
  const bool word = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  if (word) return std::nullopt;
  KeyChord chord;
  chord.key = printable_key(c);
  return normalised(chord);
}

}  // namespace attnscope
