#pragma once

#include <vector>

#include "core/mask/mask.h"

namespace attnscope {

/// A condition told by the runs of keys that each row keeps, the same for every head. Immutable and
/// thread-safe like every MaskTerm.
class RunsTerm : public MaskTerm {
 public:
  TileClass classify(int64_t batch, int64_t head, IndexRange queries,
                     IndexRange keys) const override;
  void add_bias(int64_t batch, int64_t head, std::span<const int64_t> queries, IndexRange keys,
                float* out, int64_t row_stride) const override;

 protected:
  /// Appends what row `query` keeps of `keys`: runs within `keys`, not empty, ascending, disjoint.
  virtual void append_runs(int64_t query, IndexRange keys, std::vector<IndexRange>& runs) const = 0;
};

}  // namespace attnscope
