#pragma once

#include <memory>
#include <vector>

#include "viewer/tiles/map_work.h"

namespace attnscope {

/// Maps that are computed from Q and K.
std::unique_ptr<MapWork> computed_maps(const std::vector<MapCall>& calls);

}  // namespace attnscope
