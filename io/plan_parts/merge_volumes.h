#pragma once

#include <filesystem>
#include <vector>

#include "core/base/memory_budget.h"
#include "io/plan_parts/merge_tables.h"

namespace attnscope {

/// Writes the volumes of all heads that parts of a query have (.h5) as one output, .npy, .csv or
/// .h5 by its name: byte for byte what one process would have written. Holds all of them, in
/// `budget`. Throws Error(file) as order_of_parts() and read_part_volumes() do, and where parts are
/// not of one query; Error(usage) for another name; Error(resource).
MergeResult merge_volumes(const std::vector<std::filesystem::path>& parts,
                          const std::filesystem::path& out, const TableMerge& how, bool force,
                          MemoryBudget& budget);

}  // namespace attnscope
