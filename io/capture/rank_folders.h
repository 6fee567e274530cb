#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace attnscope {

/// A folder rank-R-of-N, in which one of the processes that ran a model together recorded its part.
struct RankFolder {
  std::filesystem::path path;
  int64_t rank = 0, ranks = 0;
};

/// Those in `folder`, ascending by ranks and rank; none where it cannot be read.
std::vector<RankFolder> rank_folders(const std::filesystem::path& folder);

}  // namespace attnscope
