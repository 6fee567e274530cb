#pragma once

#include <span>
#include <stop_token>
#include <vector>

#include "core/stream/number_range.h"
#include "core/stream/tile_sink.h"

namespace attnscope {

/// The options of a scan: tensors beside q and k, and the most threads: a few are enough for any
/// memory. Each takes up to 2 MiB.
struct ValueScan {
  bool with_values = false;
  int threads = 1;
  /// Keys that heads of this backend refuse on their own (refuses_bad_keys) are left to them, so
  /// that they are read once; where something else fails they are scanned all the same if they come
  /// first. Not with values. Borrowed; null: all are scanned.
  const TileBackend* few_rows_of = nullptr;
  /// The backend that is to compute: heads whose subnormal numbers it would get wrong are refused
  /// (check_subnormals). Borrowed; null: no head is.
  const TileBackend* backend = nullptr;
};

/// Scans the q of every task and the k (and v, where they are asked for) that they use, each once,
/// for NaN and Inf; of tasks of up to 16 rows these rows of q and no others, which they do not
/// need. Throws Error(value) naming tensor, index and value of the first in the order of the tasks,
/// by any number of threads; Error(interrupted) soon after a stop is requested. Returns what was
/// found of each task.
std::vector<TaskMagnitudes> check_values(std::span<const HeadTask> tasks,
                                         const std::stop_token& stop, const ValueScan& scan = {});

}  // namespace attnscope
