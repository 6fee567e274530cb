#pragma once

#include <filesystem>
#include <span>

#include "core/problem/head_set.h"

namespace attnscope {

/// Writes heads as a list that `--from` reads (attnscope-heads/1), each with the facts that its
/// pattern has. Replaces a file only with `force`, and none of `inputs`, which are read. Throws
/// Error(file), and Error(usage) for a name that does not end in .json.
void write_head_list(std::span<const HeadPattern> heads, const std::filesystem::path& file,
                     bool force, std::span<const std::filesystem::path> inputs);

}  // namespace attnscope
