#pragma once

#include <filesystem>
#include <vector>

#include "io/plan_parts/merge_maps.h"
#include "io/plan_parts/merge_tables.h"

namespace attnscope {

/// True of a folder whose capture.json says that it is a part.
bool is_part_of_capture(const std::filesystem::path& folder);

/// Makes the folder that one `convert` would have written of the folders that are its parts: their
/// calls' files and the first one's pictures, by hard links where `copy` is not asked for and the
/// file system has them, and a capture.json of all calls. The whole is opened before it gets its
/// name. Throws Error(file) as order_of_parts() and CaptureFolder do, and where a part is damaged;
/// Error(interrupted).
MergeResult merge_captures(const std::vector<std::filesystem::path>& parts,
                           const std::filesystem::path& out, bool copy, const TableMerge& how,
                           bool force, const MergeControl& control);

}  // namespace attnscope
