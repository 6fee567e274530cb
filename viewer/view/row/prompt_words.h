#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "viewer/view/looks/words_look.h"
#include "viewer/view/maps/map_tile.h"
#include "viewer/view/query_words.h"

namespace attnscope {

/// A token of the prompt.
struct PromptWord {
  int64_t number = 0;    ///< within the text
  std::string text;      ///< without its tokenizer's marks, one printable line; empty: not recorded
  bool special = false;  ///< a token of the tokenizer's own, or padding
  bool padding = false;  ///< after the valid tokens, or a token that pads
};

/// The text of one side of a map, in its order.
std::vector<PromptWord> prompt_words(const TokenNames& names);

/// A word of the list with what it has.
struct WordRow {
  PromptWord word;
  double mass = 0;      ///< NaN: not known
  double usual = 0;     ///< its mean over the video's rows; NaN: not known
  bool masked = false;  ///< for the query that is looked at
  bool chosen = false;
};

/// The list in the words' pane. Sums are in double, in the order of the prompt; words that have no
/// number count in none.
struct WordList {
  std::vector<WordRow> words, special;
  double words_mass = 0, special_mass = 0, chosen_mass = 0;
  int64_t filtered = 0;  ///< words that the filter leaves out of the list; they are in the sums
  double largest = 0;    ///< of all numbers of the rows that are listed
  /// Special tokens and padding that are neither listed nor in any sum.
  int64_t excluded = 0;
};

/// `masses` and `usual` have a number for each of `words`, or none at all; `masked` likewise.
WordList list_words(std::span<const PromptWord> words, std::span<const double> masses,
                    std::span<const double> usual, std::span<const uint8_t> masked,
                    const WordsLook& look);

/// All parts of "5,7-9"; nothing where one of them is no number.
std::optional<std::vector<IndexRange>> number_lists(std::string_view text);

/// The words that `word TEXT` of a script means, counted within the text of `names`: "5", "5,6,9",
/// "3-7", or a word or phrase as resolve_text_token() finds it. Ascending, each once. Throws
/// Error(usage) that names what exists.
std::vector<int64_t> chosen_words(const TokenNames& names, const std::string& text);

/// The chosen words as people read them: "«red» + «dog»", "«red circle»" of words that follow each
/// other, "«a» + «b» + «c» + 4 more".
std::string chosen_text(std::span<const PromptWord> words, std::span<const int64_t> chosen);

}  // namespace attnscope
