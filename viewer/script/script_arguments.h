#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"

namespace attnscope {

/// The words of a script's line, the command's name first.
using ScriptArguments = std::span<const std::string>;

/// A finite number. Throws Error(usage) "WHAT: expected a number, got "x"".
double parse_script_number(std::string_view what, const std::string& text);
/// The word at `at` as a number.
int64_t whole(ScriptArguments words, size_t at);
double number(ScriptArguments words, size_t at);

}  // namespace attnscope
