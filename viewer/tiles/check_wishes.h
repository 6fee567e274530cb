#pragma once

#include <functional>

#include "viewer/view/maps/tile_source.h"

namespace attnscope {

/// Throws Error(usage) where a wish is for no tile, token or entry of its head's map; what
/// `geometry` throws for an unknown head is let through.
void check_wishes(const Wishes& wishes, const std::function<MapGeometry(const HeadId&)>& geometry);

}  // namespace attnscope
