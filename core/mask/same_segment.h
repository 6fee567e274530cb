#pragma once

#include <memory>

#include "core/mask/mask.h"
#include "core/tensor/tensor_source.h"

namespace attnscope {

/// The keys whose segment has the query's number. `segments`: i64 [N] or [B, N], N = Nq = Nk, any
/// numbers in any order; read at the first use and kept as runs of equal numbers. Throws
/// Error(usage) where it is of another type or has other axes; the mask's members may throw what
/// reading throws. Sequences packed one after another are Mask::segments.
Mask same_segment_mask(std::shared_ptr<const TensorSource> segments);

}  // namespace attnscope
