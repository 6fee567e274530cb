#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "io/files/json_types.h"
#include "io/files/output_file.h"
#include "io/plan_parts/merge_maps.h"

namespace attnscope {

/// True of a .json of numbers of heads that says that it is of `product`: "stats", "mask" or "lab".
bool is_table_json(const std::filesystem::path& path, std::string_view product);

/// How numbers are joined.
struct TableMerge {
  bool mixed = false;  ///< parts of several backends as well
  std::string sort;
  bool dry_run = false;  ///< check the parts, write nothing
};

/// Numbers of all heads, as the .json and the .csv of the whole have them.
struct JoinedTable {
  OrderedJson json;
  std::string csv;
};
/// What merge_stats() and merge_masks() would write.
JoinedTable join_stats(const std::vector<std::filesystem::path>& parts, const TableMerge& how);
JoinedTable join_masks(const std::vector<std::filesystem::path>& parts, const TableMerge& how);

/// Writes the numbers of all heads that parts of stats have (.json or .h5) as one output, .json,
/// .csv or .h5 by its name: byte for byte what one process would have written, sorted by the number
/// `how.sort`, empty: as the capture has them. An .h5 is made of .h5 alone, which say what a .json
/// does not. Throws Error(file) as order_of_parts() does and where a part is damaged, Error(usage)
/// for a name or a number that is none.
MergeResult merge_stats(const std::vector<std::filesystem::path>& parts,
                        const std::filesystem::path& out, const TableMerge& how,
                        OutputFileOptions options);

/// Writes what masks keep, or edits cost, of all heads that parts of it have (.json) as .json or
/// .csv; otherwise as merge_stats().
MergeResult merge_masks(const std::vector<std::filesystem::path>& parts,
                        const std::filesystem::path& out, const TableMerge& how,
                        OutputFileOptions options);

}  // namespace attnscope
