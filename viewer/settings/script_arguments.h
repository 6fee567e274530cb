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
/// A word as a script writes it: in double quotes where it has to be. Throws Error(file) for one
/// with a line break.
std::string script_quoted(const std::string& word);
/// The word for a text that may be empty, for which `none` stands; before a text that would read
/// so, or that begins with a backslash, stands a backslash.
std::string text_word(const std::string& text, std::string_view none);
/// The text that text_word() made a word of.
std::string word_text(const std::string& word, std::string_view none);

}  // namespace attnscope
