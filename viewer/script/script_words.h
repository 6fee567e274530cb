#pragma once

#include <span>
#include <string>

#include "viewer/script/script.h"

namespace attnscope {

/// The command that the words of one line make; the first is its name. Throws Error(usage) without
/// a place.
ScriptWord parse_script_words(std::span<const std::string> words);

}  // namespace attnscope
