#pragma once

#include <vector>

#include "core/mask/mask.h"

namespace attnscope {

/// An entry may be attended to where at least one of `masks` (not empty, without finite biases)
/// lets it. A rectangle that only several of them cover together is told as mixed. Throws
/// Error(usage) where a mask may hold finite biases.
Mask mask_union(std::vector<Mask> masks);

}  // namespace attnscope
