#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "core/base/index_range.h"
#include "core/stream/tile_backend.h"

namespace attnscope {

/// A stretch of one row that is contiguous in an EmitTarget.
struct EmitRun {
  int64_t col = 0;  ///< first column, counted from the rectangle's first key
  int64_t count = 0;
  std::byte* destination = nullptr;
};

/// Calls visit(run) for the wanted stretches of columns `cols` of a row, in ascending order;
/// columns of null blocks are left out.
template <typename Visit>
void for_each_run(const EmitTarget& target, int64_t row, IndexRange cols, Visit visit) {
  const int64_t bytes = encoding_bytes(target.encoding);
  for (int64_t col = cols.begin; col < cols.end;) {
    const int64_t block = col / target.block_cols;
    const int64_t offset = col % target.block_cols;
    const int64_t count = std::min(cols.end - col, target.block_cols - offset);
    if (std::byte* base = target.blocks[static_cast<size_t>(block)]) {
      visit(EmitRun{col, count, base + (row * target.row_stride + offset) * bytes});
    }
    col += count;
  }
}

/// True where any of the columns is wanted. `cols` must not be empty.
inline bool wants_any(const EmitTarget& target, IndexRange cols) {
  const int64_t last = (cols.end - 1) / target.block_cols;
  for (int64_t block = cols.begin / target.block_cols; block <= last; ++block) {
    if (target.blocks[static_cast<size_t>(block)] != nullptr) return true;
  }
  return false;
}

}  // namespace attnscope
