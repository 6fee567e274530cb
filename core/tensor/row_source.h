#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>

#include "core/base/index_range.h"
#include "core/tensor/layout.h"

namespace attnscope {

/// The rows of one head's Q, K or V as floats, as they are stored or as they would be had something
/// been done otherwise. Immutable; thread-safe. What it is made of is shared or copied.
class RowSource {
 public:
  virtual ~RowSource() = default;
  virtual int64_t tokens() const = 0;
  virtual int64_t width() const = 0;
  /// Rows [rows.size(), width()], packed.
  virtual void read(IndexRange rows, float* out) const = 0;
};
using RowSourcePtr = std::shared_ptr<const RowSource>;

/// One head as it is stored.
RowSourcePtr stored_rows(const HeadTensor& tensor, int64_t batch, int64_t head);

/// One head of a tensor whose bytes have heads and tokens the other way round than its shape says:
/// what a view() instead of a transpose() leaves.
RowSourcePtr reshaped_rows(const HeadTensor& tensor, int64_t batch, int64_t head);

/// Row i is row order(i) of `rows`.
RowSourcePtr reordered_rows(RowSourcePtr rows, std::function<int64_t(int64_t token)> order);

/// Every row, changed in place by `change(token, row [width])`, which must be thread-safe.
RowSourcePtr changed_rows(RowSourcePtr rows, std::function<void(int64_t token, float* row)> change);

}  // namespace attnscope
