#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/index_range.h"
#include "core/problem/token_grid.h"

namespace attnscope {

/// The prompt that a --text-token is looked up in.
struct PromptText {
  /// The token strings as they were recorded; empty where none were, else at most `length`.
  std::span<const std::string> tokens;
  int64_t length = 0;  ///< text tokens of the sequence, padding included
  std::string where;   ///< how messages name it: "FILE, batch item 1"
};

/// The places within the text, counted from 0, that `--text-token TEXT` means: a number N, an
/// inclusive range A-B, a word, or a phrase: words with spaces between
/// them, which follow each other in the prompt. A word is compared without the marks ▁ Ġ ## </w>
/// and spaces around tokens and in any case (Latin, Greek and Cyrillic letters); it may consist of
/// several consecutive pieces, of which none but the first starts a word. Throws Error(usage) where
/// a number lies outside, and where a word or phrase occurs nowhere, more than once, or no strings
/// were recorded.
IndexRange resolve_text_token(const std::string& text, const PromptText& prompt);

/// True where `--text-token TEXT` is a number N or a range A-B: each token is then an item of its
/// own, while a word of several pieces is one item.
bool is_token_number(const std::string& text);

/// The places that the texts of `asked` mean, in their order; where there is none, those of all
/// text tokens that are not padding in this batch item. `tokens` is the sequence with the text.
/// Throws as resolve_text_token().
std::vector<int64_t> choose_text_tokens(std::span<const std::string> asked, const TokenGrid& tokens,
                                        int64_t batch, const PromptText& prompt);

/// The token strings of a batch item: `lists` has one for all items, or one each, or none at all
/// (then they are empty).
std::span<const std::string> words_of(std::span<const std::vector<std::string>> lists,
                                      int64_t batch);

}  // namespace attnscope
