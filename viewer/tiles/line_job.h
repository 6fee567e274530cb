#pragma once

#include <memory>

#include "viewer/tiles/map_job.h"

namespace attnscope {

/// A row or column of the map, or the mean of several.
std::shared_ptr<MapJob> make_line_job(const LineRequest& request, const HeadCache& head);

}  // namespace attnscope
