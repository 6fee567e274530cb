#pragma once

#include <memory>

#include "viewer/tiles/map_job.h"

namespace attnscope {

/// Samples rows of the head, stage by stage, until it is exact.
std::shared_ptr<MapJob> make_overview_job(const HeadId& id, Quantity quantity);
/// Cuts a tile of the base level or above from the overview after each of its stages.
std::shared_ptr<MapJob> make_cut_job(const TileId& id);

}  // namespace attnscope
