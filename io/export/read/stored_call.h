#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/index_range.h"
#include "core/problem/model_place.h"
#include "core/problem/token_grid.h"

namespace attnscope {

/// The facts that a group of an export records of its call.
struct StoredFacts {
  int64_t step = 0, layer = 0;
  std::string branch, kind, score, model;
  std::string q_state;           ///< empty: not recorded
  ModelPlace place;              ///< empty where the file has none
  std::string mask;              ///< as Mask::describe(); "none" without one
  std::string sinks;             ///< as Sinks::describe(); empty: none
  std::vector<int64_t> queries;  ///< the capture's index of each row, ascending
  IndexRange keys;               ///< the capture's indices of the columns
  /// The capture's sequences, as far as the file tells: without a grid they end with the last row
  /// or column that was exported.
  TokenGrid query_tokens, key_tokens;

  /// As AttentionProblem::same_tokens().
  bool same_tokens() const { return kind != "cross" && query_tokens.same_places(key_tokens); }
};

}  // namespace attnscope
