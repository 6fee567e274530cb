#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>

#include "core/base/index_range.h"

namespace attnscope {

/// Maps each position of a stream to its token in one of several sequences. Neighbouring positions
/// whose tokens are neighbours are kept as one run. Not thread-safe.
class PositionMap {
 public:
  struct Run {
    size_t sequence = 0;
    int64_t first = 0;  ///< the token of the sequence that the run's first position is
    bool own = false;   ///< a mark of the caller's
  };

  /// From now on these positions are the tokens from run.first on.
  void assign(IndexRange positions, const Run& run);
  /// Calls `visit` for all of `positions`, in order, in parts that are of one run, or (nullptr) of
  /// none; the run's `first` is that of the part.
  void visit(IndexRange positions,
             const std::function<void(IndexRange part, const Run* run)>& visit) const;
  /// Visits all positions that stand for a token, run by run.
  void visit_all(const std::function<void(IndexRange part, const Run& run)>& visit) const;

 private:
  struct Entry {
    int64_t end = 0;
    Run run;
  };
  /// Makes `position` the begin of a run, where it lies in one.
  void cut(int64_t position);

  std::map<int64_t, Entry> runs_;  ///< by their first position
};

}  // namespace attnscope
