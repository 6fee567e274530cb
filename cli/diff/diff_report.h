#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli/diff/diff_pairs.h"

namespace attnscope {

/// What was found of a pair.
struct DiffRow {
  HeadName a, b;
  HeadDifference found;
  bool of_exports = false;  ///< whose entries may not all be there
};

/// {"format": "attnscope-diff/1", "a", "b", "pairs": [...]}; what is undefined is null.
nlohmann::ordered_json diff_json(const std::string& a, const std::string& b,
                                 const std::vector<DiffRow>& rows);
/// A table for people on standard output.
void print_diff_table(const std::vector<DiffRow>& rows);
/// The extensions that write_diff() knows. Throws Error(usage) for another.
void check_diff_name(const std::string& path);
/// The list of the JSON that becomes a table, and what the table's dimension is called.
struct DiffList {
  std::string name = "pairs", dimension = "pair";
  std::vector<std::string> columns = {};  ///< of a list that may have no items
};
/// The JSON; or a line an item of the list, or a variable a number over the items (.h5), without
/// what is a list itself. Throws Error(file).
void write_diff(const nlohmann::ordered_json& json, const std::filesystem::path& path, bool force,
                const DiffList& list = {});

}  // namespace attnscope
