#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace attnscope {

/// A table of texts: the names of its first line, and the lines below it.
struct CsvTable {
  std::vector<std::string> names;
  std::vector<std::vector<std::string>> lines;  ///< as many fields each as there are names
  std::vector<int64_t> numbers = {};            ///< where each line begins in the file, from 1
};

/// Parses CSV (RFC 4180; lines may also end in \n alone, and a byte order mark may stand in front).
/// Throws Error(file) that names `file` and the line where a quote does not end, a line has another
/// number of fields, a name is there twice, or nothing is there.
CsvTable parse_csv(std::string_view text, const std::string& file);

}  // namespace attnscope
