#pragma once

#include <optional>

#include "viewer/commands/key_chord.h"

namespace attnscope {

/// What a key press of GLFW means: letters, digits and named keys, and any key with Ctrl or Alt.
/// Nothing for the signs that keyboards have in different places: they come as characters.
std::optional<KeyChord> chord_of_key(int key, int mods);

/// Whether keys beside it are commands: Ctrl, Alt, and the key of the system.
bool makes_command(int key);

/// The chord of a typed sign that is neither letter, digit nor space.
std::optional<KeyChord> chord_of_character(unsigned code);

}  // namespace attnscope
