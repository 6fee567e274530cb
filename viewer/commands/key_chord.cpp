#include "viewer/commands/key_chord.h"

#include <fmt/core.h>

#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/nearest_word.h"

namespace attnscope {
namespace {

/// The signs that a US keyboard types without and with Shift.
constexpr std::string_view kPlain = "`1234567890-=[]\\;',./";
constexpr std::string_view kShifted = "~!@#$%^&*()_+{}|:\"<>?";

/// In the order of Key, without the function keys; the first name of a key is the one written.
constexpr std::array<std::pair<std::string_view, Key>, 15> kNamed{{{"Left", Key::left},
                                                                   {"Right", Key::right},
                                                                   {"Up", Key::up},
                                                                   {"Down", Key::down},
                                                                   {"PageUp", Key::page_up},
                                                                   {"PageDown", Key::page_down},
                                                                   {"Home", Key::home},
                                                                   {"End", Key::end},
                                                                   {"Insert", Key::insert},
                                                                   {"Delete", Key::del},
                                                                   {"Backspace", Key::backspace},
                                                                   {"Enter", Key::enter},
                                                                   {"Escape", Key::escape},
                                                                   {"Tab", Key::tab},
                                                                   {"Space", Key::space}}};
constexpr std::array<std::pair<std::string_view, Key>, 9> kOtherNames{
    {{"←", Key::left},
     {"→", Key::right},
     {"↑", Key::up},
     {"↓", Key::down},
     {"Esc", Key::escape},
     {"Del", Key::del},
     {"Plus", printable_key('+')},
     {"Minus", printable_key('-')},
     {"−", printable_key('-')}}};

char upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }

bool same_name(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (upper(a[i]) != upper(b[i])) return false;
  }
  return true;
}

Key function_key(int number) { return static_cast<Key>(static_cast<int>(Key::f1) + number - 1); }

std::optional<Key> parse_key(std::string_view text) {
  if (text.size() == 1 && text[0] > ' ' && text[0] <= '~') return printable_key(upper(text[0]));
  for (const auto& [name, key] : kNamed) {
    if (same_name(name, text)) return key;
  }
  for (const auto& [name, key] : kOtherNames) {
    if (same_name(name, text)) return key;
  }
  for (int number = 1; number <= 12; ++number) {
    if (same_name(fmt::format("F{}", number), text)) return function_key(number);
  }
  return std::nullopt;
}

Error unknown_key(std::string_view whole, std::string_view part) {
  std::vector<std::string> names{"Ctrl", "Shift", "Alt"};
  for (const auto& [name, key] : kNamed) names.emplace_back(name);
  const std::string nearest = nearest_word(part, names);
  return usage_error(fmt::format("key {}: \"{}\" is no key{}", one_line(whole), one_line(part),
                                 nearest.empty() ? " (for example Ctrl+Z, Alt+Left, [, F12)"
                                                 : ", did you mean " + nearest + "?"));
}

}  // namespace

KeyChord normalised(KeyChord chord) {
  if (chord.key >= Key::first_named) return chord;
  const char sign = upper(static_cast<char>(chord.key));
  chord.key = printable_key(sign);
  if (sign >= 'A' && sign <= 'Z') return chord;
  const size_t plain = kPlain.find(sign);
  if (chord.shift && plain != std::string_view::npos) chord.key = printable_key(kShifted[plain]);
  chord.shift = false;
  return chord;
}

KeyChord parse_chord(std::string_view text) {
  KeyChord chord;
  std::string_view rest = text;
  // A plus sign at the end is the key itself.
  for (size_t plus = rest.find('+', 1); plus != std::string_view::npos && plus + 1 < rest.size();
       plus = rest.find('+', 1)) {
    const std::string_view part = rest.substr(0, plus);
    bool& modifier = same_name(part, "Shift") ? chord.shift
                     : same_name(part, "Alt") ? chord.alt
                                              : chord.ctrl;
    const bool known =
        &modifier != &chord.ctrl || same_name(part, "Ctrl") || same_name(part, "Control");
    if (!known) throw unknown_key(text, part);
    if (std::exchange(modifier, true)) {
      throw usage_error(fmt::format("key {}: {} occurs twice", one_line(text), part));
    }
    rest.remove_prefix(plus + 1);
  }
  const auto key = parse_key(rest);
  if (!key) throw unknown_key(text, rest);
  chord.key = *key;
  return normalised(chord);
}

std::string chord_text(const KeyChord& chord) {
  std::string text;
  if (chord.ctrl) text += "Ctrl+";
  if (chord.alt) text += "Alt+";
  if (chord.shift) text += "Shift+";
  if (chord.key < Key::first_named) return text + static_cast<char>(chord.key);
  for (const auto& [name, key] : kNamed) {
    if (key == chord.key) return text + std::string(name);
  }
  return text + fmt::format("F{}", static_cast<int>(chord.key) - static_cast<int>(Key::f1) + 1);
}

}  // namespace attnscope
