#pragma once

#include <cstdint>

#include "core/base/memory_budget.h"
#include "core/mask/mask.h"
#include "core/stream/tile_backend.h"
#include "core/stream/tile_sink.h"

namespace attnscope {

/// Seconds that row norms of a few row panels, spread evenly over the head, take one thread when
/// blocks of `block` x `block` tokens that `mask` leaves empty are left out, over seconds without
/// the mask (the call's own mask holds in both): what block-sparse attention can gain on this
/// machine. The better of two runs each; binding is not counted. Throws Error(resource) where the
/// budget has no room for the blocks.
double mask_time_ratio(const HeadTask& head, const Mask& mask, int64_t block,
                       const TileBackend& backend, MemoryBudget& budget);

}  // namespace attnscope
