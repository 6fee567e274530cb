#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cli/common/query_options.h"
#include "core/products/query_volumes.h"
#include "python/native/call_maps.h"

namespace attnscope {

/// The options of a query, in the words of `attnscope query`.
struct QueryWords {
  QueryOptions tokens;
  std::string domain = "all", weighting = "none", segment;
  bool reverse = false;
  std::string cache;  ///< --cache, of a call of a capture
};

/// Attention of the chosen tokens (the mean of several) over the sequence, a volume a head.
struct QueryAnswer {
  std::array<int64_t, 3> grid{};  ///< T, H, W; 0: none is known
  std::vector<QueryVolume> volumes;
};

/// Throws as the command does.
QueryAnswer answer_query(const CallHandle& call, std::span<const HeadPlace> heads,
                         const QueryWords& words, EngineRun& run);

}  // namespace attnscope
