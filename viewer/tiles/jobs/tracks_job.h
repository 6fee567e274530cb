#pragma once

#include <memory>

#include "viewer/tiles/jobs/map_job.h"

namespace attnscope {

/// A head's tracks from a sample of its rows, in one piece; or from all of them, panel by panel,
/// with the numbers of `stats`. They are kept with the head; exact ones are not replaced.
std::shared_ptr<MapJob> make_tracks_job(const HeadId& head, bool exact);

/// Rows of the sample.
inline constexpr int64_t kTrackSample = 256;

}  // namespace attnscope
