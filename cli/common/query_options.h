#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cli/common/console.h"
#include "cli/common/parser.h"
#include "core/problem/attention_problem.h"
#include "core/products/tokens/chosen_tokens.h"

namespace attnscope {

/// The values of the options that choose *query rows*.
struct QueryOptions {
  std::vector<std::string> coords;       ///< --query T,Y,X or boxes T,Y0:Y1,X0:X1
  std::vector<int64_t> indices;          ///< --index N
  std::string list;                      ///< --queries LIST
  std::vector<std::string> text_tokens;  ///< --text-token N|STRING
  std::vector<std::string> pixels;       ///< --at, until settle_pixels() finds its token
  /// Of the last of `coords`, which --at chose: their pixels, "frame 40, x 352, y 240".
  std::vector<std::string> pixel_words = {};

  bool any() const {
    return !coords.empty() || !indices.empty() || !list.empty() || !text_tokens.empty() ||
           !pixels.empty();
  }
};
/// Adds --query, --at, --index and, where `with_list`, --queries.
void add_query_options(CommandParser& command, QueryOptions& options, bool with_list);
/// Adds --text-token.
void add_text_token_option(CommandParser& command, QueryOptions& options);

/// The rows that --query, --index and --queries ask for in one call, as indices of its sequence,
/// ascending and unique. Throws Error(usage) naming the valid range.
std::vector<int64_t> resolve_queries(const QueryOptions& options, const AttentionProblem& problem);

/// A sequence that tokens are chosen from: a call's queries, or its keys.
struct TokenSequence {
  const TokenGrid& grid;
  std::span<const std::string> words;  ///< recorded strings of its text; may be empty
  std::string name;                    ///< how messages name it
};

/// The tokens that the options choose of one batch item's sequence. Throws Error(usage) naming the
/// valid range, or what else is wrong.
ChosenTokens resolve_tokens(const QueryOptions& options, const TokenSequence& sequence);

/// Says where tokens of the text and others are averaged together.
void tell_mixed_tokens(std::span<const int64_t> tokens, const TokenGrid& grid,
                       const Console& console);

/// How titles name the tokens: "query 5,10,22", "index 17", "text token dog", "mean of 2 queries
/// (5,10,22; 3,2,1)"; as keys: "attention to key 5,10,22" …
std::string describe_chosen(const QueryOptions& options, const ChosenTokens& chosen, bool as_keys);

}  // namespace attnscope
