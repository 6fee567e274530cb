#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "viewer/script/script_words.h"

namespace attnscope {

/// The name that `print` and `expect` are given. Throws Error(usage) that begins with `what` and
/// lists the names.
ScriptName parse_script_name(std::string_view what, const std::string& name);
/// The words that a name can have as its value; empty: any.
std::vector<std::string> script_name_values(ScriptName name);

}  // namespace attnscope
