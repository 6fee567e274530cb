#pragma once

#include <memory>
#include <vector>

#include "core/problem/rope.h"
#include "core/tensor/layout.h"

namespace attnscope {

/// `tensor` as [batch, heads, tokens, width] in its dtype, with every row of head h turned by
/// rotations[h] when it is read: in float32, rounded to the dtype as the models do. Shares the
/// tensor and owns the rotations; thread-safe. Rows are turned on every reading.
std::shared_ptr<const TensorSource> rotated_tensor(const HeadTensor& tensor,
                                                   std::vector<HeadRotation> rotations);

}  // namespace attnscope
