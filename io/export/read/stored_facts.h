#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/base/index_range.h"
#include "core/problem/token_grid.h"
#include "io/export/format/stored_export.h"

namespace attnscope {

/// What a group of an export says of its call.
struct StoredFacts {
  int64_t step = 0, layer = 0;
  std::string branch, kind, score, model;
  std::vector<int64_t> queries;  ///< the capture's index of each row, ascending
  IndexRange keys;               ///< the capture's indices of the columns
  /// The capture's sequences, as far as the file tells: without a grid they end with the last row
  /// or column that was exported.
  TokenGrid query_tokens, key_tokens;
};

/// The facts of the groups, in their order; in a child process, as read_stored_export(). Throws
/// Error(file) where they cannot be read or do not fit the groups.
std::vector<StoredFacts> read_stored_facts(const std::filesystem::path& path,
                                           const std::vector<StoredGroup>& groups);

}  // namespace attnscope
