#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/base/index_range.h"
#include "core/problem/token_grid.h"

namespace attnscope {

/// The tokens of one batch item's sequence that a query is about.
struct ChosenTokens {
  std::vector<int64_t> tokens;  ///< indices of the sequence, ascending and unique
  /// [tokens]: how many of the items hold the token. An item is a place, or a word, which may have
  /// several tokens.
  std::vector<int64_t> counts;
  int64_t items = 0;
  std::vector<int64_t> text;  ///< the words' tokens, counted within the text, ascending

  /// The weight of each token in the mean over the items: [tokens].
  std::vector<double> shares() const;
};

/// The places of a sequence and the words, in any order and perhaps repeated, each word given by
/// its tokens counted within the text of `grid`.
ChosenTokens choose_tokens(std::vector<int64_t> places, std::span<const IndexRange> words,
                           const TokenGrid& grid);

/// The latent position of a single chosen token, for pictures: t, y, x.
std::optional<std::array<int64_t, 3>> single_coord(const ChosenTokens& chosen,
                                                   const TokenGrid& grid);

}  // namespace attnscope
