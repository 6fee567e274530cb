#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/base/index_range.h"
#include "core/tensor/layout.h"
#include "core/tensor/tensor_source.h"

namespace attnscope {

/// Rows of a tensor [B, H, N, d] or [B, H, N] that follow each other in a joined one.
struct RowPiece {
  IndexRange rows;  ///< of the tensor
  /// Copies rows of one head, packed; thread-safe.
  std::function<void(int64_t batch, int64_t head, IndexRange rows, std::byte* destination)> read;
};

RowPiece head_rows(HeadTensor tensor, IndexRange rows);
/// Of a tensor [B, H, N].
RowPiece scalar_rows(std::shared_ptr<const TensorSource> tensor, IndexRange rows);

/// A tensor whose rows are those of others, one piece after the other. Nothing is held: what is
/// read is read from them. `width` is 0 for [B, H, N], else d of [B, H, N, d].
std::shared_ptr<const TensorSource> joined_rows(std::string name, DType dtype, int64_t batch,
                                                int64_t heads, int64_t width,
                                                std::vector<RowPiece> pieces);

}  // namespace attnscope
