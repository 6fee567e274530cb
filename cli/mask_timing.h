#pragma once

#include "core/mask.h"
#include "core/memory_budget.h"
#include "core/tile_backend.h"
#include "core/tile_sink.h"

namespace attnscope {

/// Seconds that row norms of a few row panels, spread evenly over the head, take one thread under
/// the call's own mask and `mask`, over seconds under the call's own mask alone: what this
/// machine's kernels gain by leaving out what the mask leaves empty (they do so in pieces of 32
/// keys). The better of two runs each; binding is not counted.
double mask_time_ratio(const HeadTask& head, const Mask& mask, const TileBackend& backend,
                       MemoryBudget& budget);

}  // namespace attnscope
