#pragma once

#include <filesystem>
#include <vector>

#include "core/base/memory_budget.h"
#include "core/products/query_volumes.h"
#include "io/plan_parts/merge_tables.h"

namespace attnscope {

/// The volumes of all heads that parts of a query have (.h5), in `held` of the budget. Throws
/// Error(file) as order_of_parts() and read_part_volumes() do, and where parts are not of one
/// query; Error(resource).
QueryVolumes join_volumes(const std::vector<std::filesystem::path>& parts, const TableMerge& how,
                          MemoryBudget& budget, MemoryReservation& held);

/// Writes the volumes of all heads that parts of a query have (.h5) as one output, .npy, .csv or
/// .h5 by its name: byte for byte what one process would have written. Holds all of them, in
/// `budget`. Throws as join_volumes(), and Error(usage) for another name.
MergeResult merge_volumes(const std::vector<std::filesystem::path>& parts,
                          const std::filesystem::path& out, const TableMerge& how, bool force,
                          MemoryBudget& budget);

}  // namespace attnscope
