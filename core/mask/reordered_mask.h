#pragma once

#include "core/base/place_order.h"
#include "core/mask/mask.h"

namespace attnscope {

/// The mask of a map whose rows and columns stand in other orders: what `mask` says of the tokens
/// that stand at the places. Its sizes are `mask`'s. A rectangle whose tokens are scattered is told
/// to be mixed unless all between them is alike.
Mask reordered_mask(const Mask& mask, const MapPlaces& places);

}  // namespace attnscope
