#include "core/mask/mask_runs.h"

#include <algorithm>

#include "core/mask/masked_bias.h"

namespace attnscope {

TileClass RunsTerm::classify(int64_t, int64_t, IndexRange queries, IndexRange keys) const {
  bool any_kept = false, any_masked = false;
  // Called for many small rectangles: an allocation each would show.
  thread_local std::vector<IndexRange> runs;
  for (int64_t query = queries.begin; query < queries.end; ++query) {
    runs.clear();
    append_runs(query, keys, runs);
    int64_t kept = 0;
    for (const IndexRange& run : runs) kept += run.size();
    any_kept |= kept > 0;
    any_masked |= kept < keys.size();
    if (any_kept && any_masked) return TileClass::mixed;
  }
  return any_kept ? TileClass::full : TileClass::empty;
}

void RunsTerm::add_bias(int64_t, int64_t, std::span<const int64_t> queries, IndexRange keys,
                        float* out, int64_t row_stride) const {
  thread_local std::vector<IndexRange> runs;
  for (int64_t query : queries) {
    runs.clear();
    append_runs(query, keys, runs);
    int64_t past = keys.begin;
    for (const IndexRange& run : runs) {
      std::fill(out + (past - keys.begin), out + (run.begin - keys.begin), kMasked);
      past = run.end;
    }
    std::fill(out + (past - keys.begin), out + keys.size(), kMasked);
    out += row_stride;
  }
}

}  // namespace attnscope
