#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace attnscope {

/// True where the bytes are UTF-8 as RFC 3629 defines it: no sequence longer than its character
/// needs (a name must not have two spellings), no surrogate, nothing above U+10FFFF.
bool valid_utf8(std::string_view text);

/// The character that stands for bytes that are no UTF-8.
constexpr char32_t kReplacementCharacter = 0xfffd;

/// The character at byte `at` of a text, which is moved behind it. Where a sequence is broken, or
/// none that valid_utf8() knows, what there is of it is one kReplacementCharacter.
char32_t next_character(std::string_view text, size_t& at);

/// Appends a character as UTF-8; one beyond U+10FFFF loses its upper bits.
void append_character(char32_t code, std::string& text);

}  // namespace attnscope
