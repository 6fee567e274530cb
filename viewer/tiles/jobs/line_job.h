#pragma once

#include <memory>

#include "viewer/tiles/jobs/map_job.h"

namespace attnscope {

/// A row or column of the map, or the mean or the sum of several.
std::shared_ptr<MapJob> make_line_job(const LineRequest& request, const HeadCache& head);

}  // namespace attnscope
