#pragma once

#include <cstdint>
#include <vector>

#include "core/base/index_range.h"
#include "core/mask/query_spans.h"

namespace attnscope {

/// Makes spans of the runs of keys that queries attend to, query by query: as few as there are
/// neighbouring queries that attend to the same, or to one key more each at the end of a run. Not
/// thread-safe.
class SpanBuilder {
 public:
  /// The next query, behind the one before it. `runs`: ascending, disjoint, not empty; runs that
  /// meet are one. Throws Error(usage) where there are more spans than kMostQuerySpans.
  void add(int64_t query, const std::vector<IndexRange>& runs);
  /// All of them; nothing is left to add to.
  std::vector<QuerySpan> finish();

 private:
  /// True where the band can go on with a query of these runs.
  bool goes_on(int64_t query, const std::vector<IndexRange>& runs) const;
  void end_band();

  IndexRange queries_;                      ///< of the band that is being made
  std::vector<IndexRange> first_, latest_;  ///< runs of its first and its latest query
  std::vector<QuerySpan> spans_;
};

}  // namespace attnscope
