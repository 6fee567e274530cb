#pragma once

#include "viewer/script/script_arguments.h"
#include "viewer/script/script_words.h"

namespace attnscope {

// The words of single panes, as parse_script_words() has them. Throw Error(usage) without a place.

/// `volume on`, `volume orbit 30 20` ...
ScriptWord make_volume_word(const ScriptArguments& words);
/// `timeline entropy`, `timeline over layers` ...
ScriptWord make_timeline_word(const ScriptArguments& words);
/// `play on`
ScriptWord make_play_word(const ScriptArguments& words);

}  // namespace attnscope
