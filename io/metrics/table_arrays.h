#pragma once

#include <filesystem>
#include <vector>

#include "core/base/memory_budget.h"
#include "core/heads/head_record.h"

namespace attnscope {

/// The heads of a table of `stats` (.json, .h5) that have the array, with it alone and in the
/// table's order; none of a .csv, which holds no arrays, nor of a table of several runs. The memory
/// counts in `budget`, and `held` keeps it. Throws Error(file) where the file is damaged.
std::vector<HeadRecord> read_table_arrays(const std::filesystem::path& path, HeadArray which,
                                          MemoryBudget& budget, MemoryReservation& held);

}  // namespace attnscope
