#pragma once

#include <memory>

#include "core/mask/mask.h"
#include "core/tensor/tensor_source.h"

namespace attnscope {

/// The keys that `valid` marks, for every query. `valid`: bool [Nk] or [B, Nk], read at the first
/// use and kept as one bit an element. Throws Error(usage) where it is of another type or has other
/// axes; the mask's members may throw what reading throws.
Mask valid_keys_mask(std::shared_ptr<const TensorSource> valid);

/// The pairs of a marked query and a marked key: other queries have no key at all. `valid` is [N]
/// or [B, N], N = Nq = Nk; else as valid_keys_mask().
Mask valid_pairs_mask(std::shared_ptr<const TensorSource> valid);

}  // namespace attnscope
