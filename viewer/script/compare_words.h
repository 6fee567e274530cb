#pragma once

#include "viewer/script/script_arguments.h"
#include "viewer/script/script_words.h"

namespace attnscope {

// What the words of a comparison mean: `b …` and `difference …`. The arguments are the whole line.
// Throw Error(usage) without a place.
ScriptWord make_other(const ScriptArguments& words);
ScriptWord make_difference(const ScriptArguments& words);

}  // namespace attnscope
