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
/// True for `on`, false for `off`. Throws Error(usage) for any other word, named by those before
/// it.
bool is_on(ScriptArguments words, size_t at);
/// The words from `at` on, a space between each two.
std::string joined(ScriptArguments words, size_t at);
/// A word as a script writes it: in double quotes where it has to be. It must hold no line break.
std::string script_quoted(const std::string& word);

}  // namespace attnscope
