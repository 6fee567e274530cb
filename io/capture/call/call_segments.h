#pragma once

#include <set>
#include <string>
#include <vector>

#include "core/problem/token_grid.h"
#include "io/capture/call/call_tensors.h"
#include "io/capture/call/head_tensors.h"
#include "io/capture/facts/call_facts.h"

namespace attnscope {

/// The token map of one call, as the facts `queries` and `keys` state it.
struct CallSegments {
  TokenGrid queries, keys;
  /// Words of the keys' text; of the queries' where the keys have none. [1 or batch][text token],
  /// or empty.
  std::vector<std::vector<std::string>> words;
  std::set<std::string> tensors;  ///< names of the tensors that it is made of
};

/// True where the call's token map was stated.
bool has_segments(const CallFacts& facts);

/// Reads the token map. Throws as bad_fact() where it is malformed, does not fit the tensors'
/// shapes or stands beside facts that say the same in short: grid, text, text_valid, tokens, axes.
CallSegments call_segments(const CallFacts& facts, const CallTensors& tensors,
                           const HeadTensors& heads);

}  // namespace attnscope
