#pragma once

#include <filesystem>
#include <vector>

#include "io/plan_parts/merge_stats.h"

namespace attnscope {

/// True of a file that says that it is a .json of what masks keep.
bool is_mask_json(const std::filesystem::path& path);

/// Writes what masks keep of all heads, of parts that are .json, as .json or .csv by the name of
/// `out`: byte for byte what one process would have written. Throws as merge_stats() does.
MergeResult merge_masks(const std::vector<std::filesystem::path>& parts,
                        const std::filesystem::path& out, const TableMerge& how, bool force);

}  // namespace attnscope
