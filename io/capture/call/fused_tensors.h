#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/tensor/tensor_source.h"

namespace attnscope {

/// Tensors that stand side by side in one.
struct SplitTensor {
  std::vector<std::shared_ptr<const TensorSource>> parts;
  /// The order of the axes of each part, where the place of the axis tells it: "bshd", "shd".
  std::string layout;
  std::string note;
};

/// A fused tensor as its `count` parts (3: q, k, v; 2: k, v), the indices of the axis that has as
/// many: [B, N, 3, H, d] and packed [tokens, 3, H, d], as functions of fused attention take them,
/// or where there is none, an axis further in front. Parts are read where they stand and share
/// `tensor`. Throws Error(file) where it has no such axis.
SplitTensor split_fused(const std::shared_ptr<const TensorSource>& tensor, int64_t count);

}  // namespace attnscope
