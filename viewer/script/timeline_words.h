#pragma once

#include "viewer/script/script_arguments.h"
#include "viewer/view/looks/timeline_look.h"

namespace attnscope {

// What the words behind `timeline` and `play` ask for. Throw Error(usage) without a place.

TimelineChange parse_timeline_words(const ScriptArguments& words);
/// Whether to play.
bool parse_play_words(const ScriptArguments& words);

}  // namespace attnscope
