#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/capture/name_pattern.h"

namespace attnscope {

/// A folder whose files, or a file whose tensors, were told by their names (name_pattern.h).
struct NamedFolder {
  std::string pattern;
  bool of_tensors = false;             ///< of one file
  bool pattern_given = false;          ///< by --pattern; else one of the common ones
  std::vector<int64_t> steps, layers;  ///< in the names, ascending; empty: the pattern has none
  std::vector<int64_t> heads;
  int64_t files = 0;                  ///< that the pattern fits; or tensors
  std::vector<std::string> left_out;  ///< names of the others, ascending
};

/// The pattern, steps, layers and heads of these files together, by their names.
NamedFolder summary_of(const NamedFiles& files, bool pattern_given);

/// "3 files: a.txt, b.txt, c.txt"; of many the first five. `what` is one of them.
std::string first_names(const std::vector<std::string>& names, const std::string& what = "file");

}  // namespace attnscope
