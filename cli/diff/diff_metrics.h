#pragma once

#include <string>

#include "cli/common/capture_options.h"
#include "cli/diff/diff_pairs.h"

namespace attnscope {

/// What `diff` is asked for with tables of metrics in the places of captures.
struct MetricDiffRequest {
  std::string a, b;  ///< b empty: the same table
  SelectionOptions selection;
  OtherValues other;
  std::string out;
  bool force = false, json = false, quiet = false;
};

/// Of one table, mean, spread and confidence of each number of each head over its runs, and where
/// classes change along the steps; of two, or of heads against others of their table, how much the
/// means differ. The exit code. Throws as diff does.
int diff_metrics(const MetricDiffRequest& request);

}  // namespace attnscope
