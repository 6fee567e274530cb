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
};

/// {"format": "attnscope-diff/1", "a", "b", "pairs": [...]}; what is undefined is null.
nlohmann::ordered_json diff_json(const std::string& a, const std::string& b,
                                 const std::vector<DiffRow>& rows);
/// A table for people on standard output.
void print_diff_table(const std::vector<DiffRow>& rows);
/// The extensions that write_diff() knows. Throws Error(usage) for another.
void check_diff_name(const std::string& path);
/// The JSON; or a line a pair, or a variable a number over the pairs (.h5), without the rows that
/// are listed. Throws Error(file).
void write_diff(const nlohmann::ordered_json& json, const std::filesystem::path& path, bool force);

}  // namespace attnscope
