#pragma once

#include <string>
#include <vector>

#include "core/problem/head_name.h"

namespace attnscope {

/// Numbers of heads as all tables of them have: those of one capture (`attnscope stats -o`), or of
/// several runs of a model (`attnscope.probe`).
struct NumberTable {
  /// A head in one run.
  struct Line {
    size_t run = 0;
    HeadName head;
    std::string head_class;      ///< empty: not known
    std::vector<double> values;  ///< one a metric; NaN where it is not defined
  };
  std::string name;                  ///< of the file
  std::vector<std::string> runs;     ///< at least one; a capture is one without a name
  std::vector<std::string> metrics;  ///< those of docs/metrics.md in their order, then others
  std::vector<Line> lines;           ///< no head twice in a run
};

}  // namespace attnscope
