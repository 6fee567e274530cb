#pragma once

#include <memory>

#include "viewer/tiles/jobs/map_job.h"

namespace attnscope {

/// Mean weights of rows on some keys, once the norms of the head's rows are known. A piece is a
/// slab of rows; sums are in double, row by row within a slab and then slab by slab, so that the
/// threads do not show in them.
std::shared_ptr<MapJob> make_mass_job(const MassRequest& request, const HeadCache& head);

}  // namespace attnscope
