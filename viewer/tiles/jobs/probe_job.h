#pragma once

#include <memory>

#include "viewer/tiles/jobs/map_job.h"

namespace attnscope {

/// One entry: some milliseconds, where the head is bound.
std::shared_ptr<MapJob> make_probe_job(const ProbeRequest& request);

}  // namespace attnscope
