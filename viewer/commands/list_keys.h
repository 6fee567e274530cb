#pragma once

#include <optional>

#include "viewer/commands/key_chord.h"

namespace attnscope {

/// Where a list of `count` items (at least one) that stands at item `at` goes with this key: Up,
/// Down, Page Up, Page Down, Home, End. Nothing for other keys.
std::optional<int> moved_in_list(const KeyChord& chord, int at, int count);

/// Enter and Space take the item that a list stands at, and press a dialog's button.
bool takes_item(const KeyChord& chord);

}  // namespace attnscope
