#pragma once

#include <optional>
#include <string_view>

#include "viewer/commands/key_chord.h"

namespace attnscope {

/// A key as browsers tell of it (KeyboardEvent): what it types or is called ("a", "?",
/// "ArrowLeft"), which one it is on a US keyboard ("KeyA"), and what is held; Command (`meta`) is
/// Ctrl to us.
struct WebKey {
  std::string_view key, code;
  bool ctrl = false, shift = false, alt = false, meta = false;
};

/// Nothing for keys that are no command's: dead ones, those that are held (Shift …), those of an
/// input method. Letters are what the keyboard's own layout has there, where it has Latin ones.
std::optional<KeyChord> chord_of_web_key(const WebKey& key);

/// The text that the key types into a field; empty: none.
std::string_view text_of_web_key(const WebKey& key);

/// ImGui's own number of a key that its fields use (ImGuiKey); below 0: it uses it for nothing.
int imgui_key_of_web_key(const WebKey& key);

}  // namespace attnscope
