#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/index_range.h"

namespace attnscope {

/// Chosen keys that lie near one another and are computed together, with what lies between them.
struct KeyRun {
  IndexRange keys;               ///< of the sequence
  size_t first = 0;              ///< of the chosen keys
  std::vector<int64_t> columns;  ///< places within `keys` of those chosen, from `first` on
};

/// The chosen keys [first, past) (of all of them, ascending) as a run that has the keys `keys`.
KeyRun make_key_run(std::span<const int64_t> chosen, size_t first, size_t past, IndexRange keys);

/// The chosen keys [first, past) as runs of at most kMostRunKeys keys each.
inline constexpr int64_t kMostRunKeys = 4096;
std::vector<KeyRun> key_runs(std::span<const int64_t> chosen, size_t first, size_t past);

/// A row's contribution to a run: Σ factor · weight over its chosen keys, in their order, in
/// double. `row` has the run's keys; `factors` all chosen keys.
inline double weigh_keys(const float* row, const KeyRun& run, std::span<const double> factors) {
  double sum = 0;
  for (size_t i = 0; i < run.columns.size(); ++i) {
    sum += factors[run.first + i] * row[run.columns[i]];
  }
  return sum;
}

}  // namespace attnscope
