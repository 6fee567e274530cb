#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace attnscope {

/// A key: what a printable one types on a US keyboard without Shift where it is a letter (upper
/// case), with it where Shift makes another sign of it; the others by name.
enum class Key : uint16_t {
  // Printable keys have their ASCII code: 'A', '0', '[', '{', '+'.
  first_named = 256,
  left = first_named,
  right,
  up,
  down,
  page_up,
  page_down,
  home,
  end,
  insert,
  del,
  backspace,
  enter,
  escape,
  tab,
  space,
  f1,  ///< f2 … f12 follow
  f12 = f1 + 11
};
constexpr Key printable_key(char c) { return static_cast<Key>(static_cast<unsigned char>(c)); }

struct KeyChord {
  Key key = Key::escape;
  bool ctrl = false, shift = false, alt = false;
  friend bool operator==(const KeyChord&, const KeyChord&) = default;
};

/// One form for a chord, however it was typed: Shift+[ is {, z is Z, and Shift alone says nothing
/// about a sign that it makes.
KeyChord normalised(KeyChord chord);

/// "Ctrl+Z", "Alt+Left", "Shift+[", "?", "+", "Ctrl++"; in any case. Throws Error(usage) naming the
/// part that is no key, with what was perhaps meant.
KeyChord parse_chord(std::string_view text);
/// "Ctrl+Shift+Z".
std::string chord_text(const KeyChord& chord);

}  // namespace attnscope
