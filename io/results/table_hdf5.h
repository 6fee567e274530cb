#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace attnscope {

/// A variable of a table: a value a line, of numbers or of words.
struct TableColumn {
  std::string name;
  std::vector<double> numbers;  ///< NaN where undefined
  std::vector<std::string> words = {};
  bool lacks_records = false;  ///< some values nobody recorded: −1, or empty
  bool has_words() const { return !words.empty(); }
};

/// The names of the columns of which something was not recorded, for the attribute not_recorded;
/// empty: none.
std::string unrecorded_columns(const std::vector<TableColumn>& columns);

/// A variable a column, [lines] each, in the file's root, over a dimension of this name; the
/// attributes are texts of the root, with not_recorded where it is so. The columns are equally
/// long. Creates `path`, which must not exist; throws Error(file).
void write_table_hdf5(const std::vector<std::pair<std::string, std::string>>& attributes,
                      const std::string& dimension, const std::vector<TableColumn>& columns,
                      const std::filesystem::path& path);

}  // namespace attnscope
