#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace attnscope {

struct HelperQuestion;

/// How many weights each list of kept weights of a shard's group has; `lists` are their names below
/// /calls/GROUP. Read in the helper process, as somebody may have damaged the file. Throws
/// Error(file), and as ask_helper().
std::vector<int64_t> read_list_lengths(const std::filesystem::path& shard, const std::string& group,
                                       const std::vector<std::string>& lists);

/// The question that it asks.
extern const HelperQuestion kListLengthsQuestion;

}  // namespace attnscope
