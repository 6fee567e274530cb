#pragma once

#include <memory>

#include "viewer/tiles/jobs/map_job.h"

namespace attnscope {

/// A tile finer than the base level.
std::shared_ptr<MapJob> make_fine_tile_job(const TileId& id, const HeadCache& head);

}  // namespace attnscope
