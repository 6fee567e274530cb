#pragma once

#include <string>

#include "viewer/script/script_host.h"
#include "viewer/script/script_words.h"

namespace attnscope {

/// The value of a name as `print` and `expect` know it. Throws Error(usage) where nothing is open
/// or it is not known yet.
std::string script_value(ScriptName name, const ScriptHost& host);

}  // namespace attnscope
