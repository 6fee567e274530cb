#pragma once

#include <filesystem>

#include "core/base/memory_budget.h"
#include "io/metrics/number_table.h"

namespace attnscope {

/// True of a file to be read as a table: its name ends in .csv or .json and is not that of a
/// capture's index, or it is an HDF5 file of `stats` or the journal of a probe.
bool is_number_table(const std::filesystem::path& path);

/// Reads a table: .h5, .json or .csv, or the journal of a run that was cut off (.part). Metrics are
/// the numbers that are measured: neither counts nor standard errors, arrays and keys. The memory
/// counts in `budget` while it is read, and `held` keeps what the table takes. Throws Error(file)
/// that names the place where the file is no such table or damaged.
NumberTable read_number_table(const std::filesystem::path& path, MemoryBudget& budget,
                              MemoryReservation& held);

}  // namespace attnscope
