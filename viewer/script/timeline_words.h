#pragma once

#include "viewer/script/script_arguments.h"
#include "viewer/view/looks/timeline_look.h"

namespace attnscope {

// Parse the words behind `timeline` and `play`. Throw Error(usage) without a place.

TimelineChange parse_timeline_words(const ScriptArguments& words);
/// True where the steps are to be played.
bool parse_play_words(const ScriptArguments& words);

}  // namespace attnscope
