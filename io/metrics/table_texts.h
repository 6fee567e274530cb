#pragma once

#include <cstdint>
#include <filesystem>

#include "io/metrics/table_builder.h"

namespace attnscope {

/// Adds the lines of a table of text, which nobody vouches for. Throw Error(file) that names the
/// place of what is no such table.

/// A line a head, as `attnscope stats` and `attnscope.probe` write them.
void read_csv_table(const std::filesystem::path& path, TableBuilder& table);
/// `attnscope-stats/1`; reading it takes at most `memory` bytes.
void read_json_table(const std::filesystem::path& path, int64_t memory, TableBuilder& table);

}  // namespace attnscope
