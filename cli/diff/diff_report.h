#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/problem/head_name.h"
#include "core/products/differences/head_difference.h"
#include "io/files/json_types.h"
#include "io/results/table_hdf5.h"

namespace attnscope {

/// Which part of two maps of other tokens was compared.
struct ComparedSegments {
  std::string queries, keys;      ///< empty: all of maps of the same tokens
  double mass_a = 0, mass_b = 0;  ///< mean over the rows of what lies on the keys
  bool renormalised = true;       ///< rows were divided by it
};

/// The numbers that were found of a pair of heads: one row of the report.
struct DiffRow {
  HeadName a, b;
  HeadDifference found;
  bool of_exports = false;                 ///< whose entries may not all be there
  std::string dtype_a = {}, dtype_b = {};  ///< of an export's entries: "f16"; empty: computed
  ComparedSegments segments = {};
};

/// The heads of a pair: "a" and "b", their names, beside A's own fields, by which programs that
/// take lists of heads take pairs, too.
OrderedJson heads_of_pair_json(const HeadName& a, const HeadName& b);
/// {"format": "attnscope-diff/1", "a", "b", "pairs": [...]}; what is undefined is null.
OrderedJson diff_json(const std::string& a, const std::string& b, const std::vector<DiffRow>& rows);
/// The extensions that write_diff() knows. Throws Error(usage) for another.
void check_diff_name(const std::string& path);
/// Pairs of a JSON as a table's columns: those of their heads with a_ and b_ before them; without
/// what is a list itself.
std::vector<TableColumn> pair_columns(const OrderedJson& pairs);
/// The list of the JSON that becomes a table, and what the table's dimension is called.
struct DiffList {
  std::string name = "pairs", dimension = "pair";
  std::vector<std::string> columns = {};  ///< of a list that may have no items
};
/// The list as a .csv has it.
std::string diff_csv(const OrderedJson& json, const DiffList& list = {});
/// The JSON; or a line an item of the list, or a variable a number over the items (.h5), without
/// what is a list itself. Throws Error(file).
void write_diff(const OrderedJson& json, const std::filesystem::path& path, bool force,
                const DiffList& list = {});

}  // namespace attnscope
