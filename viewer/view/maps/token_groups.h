#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/problem/token_grid.h"

namespace attnscope {

/// Tokens whose masses HeadTracks adds up: the text, a latent frame, another segment.
struct TokenGroup {
  int64_t number = 0;  ///< as KeySegments counts groups
  IndexRange tokens;   ///< from the first to the last of them
  std::string name;    ///< "text", "t3", a segment's name; "video" where no grid is known
  friend bool operator==(const TokenGroup&, const TokenGroup&) = default;
};
/// Those of a sequence that have tokens, in the order of these.
std::vector<TokenGroup> token_groups(const TokenGrid& tokens);

}  // namespace attnscope
