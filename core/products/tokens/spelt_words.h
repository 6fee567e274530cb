#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/index_range.h"

namespace attnscope {

/// Tokens of a prompt that follow each other and are one word to people.
struct SpeltWord {
  enum class Kind : uint8_t {
    word,
    punctuation,  ///< marks alone, and what is nothing but a tokenizer's marks
    special,      ///< one token of the tokenizer's own: is_special_token()
  };
  std::string text;  ///< without the tokenizer's marks; of a special token as it is
  IndexRange tokens;
  Kind kind = Kind::word;
};

/// All token strings of a prompt as words, in their order and without gaps. A token goes on with
/// the word before it unless its tokenizer's marks begin or end one there, either is special, or
/// just one of them is punctuation (hyphens and apostrophes go with what they join). Where the
/// tokenizer marks no token at all, and in scripts that are written without spaces, every token is
/// a word. resolve_text_token() finds every word by its text, where it occurs once.
std::vector<SpeltWord> spelt_words(std::span<const std::string> tokens);

}  // namespace attnscope
