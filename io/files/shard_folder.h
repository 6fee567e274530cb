#pragma once

#include <filesystem>

namespace attnscope {

/// Removes a folder of shards, and nothing else: a file that is no shard keeps the folder there, as
/// an Error(file), like something of that name that is no folder. Does nothing where there is none.
void remove_shards(const std::filesystem::path& folder);

}  // namespace attnscope
