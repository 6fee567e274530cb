#pragma once

#include <memory>

#include "viewer/tiles/jobs/map_job.h"
#include "viewer/tiles/texels/texel_reader.h"

namespace attnscope {

// Maps of exports are subtracted entry by entry, as they stand in their files, before anything is
// pooled; an entry that either file lacks has no difference. Both heads must hold entries, not
// blocks (MapSource::block is 1).

/// A tile finer than the base level.
std::shared_ptr<MapJob> read_difference_tile_job(const TileId& id,
                                                 std::shared_ptr<const TexelReader> reader);
/// All tiles of the base level and above.
std::shared_ptr<MapJob> read_difference_pass_job(const DifferenceId& id,
                                                 std::shared_ptr<const TexelReader> reader);
/// All rows, compared; those that are not in both files as a whole have no divergence.
/// `distributions`: rows of both add up to 1, but for the rounding of their file.
std::shared_ptr<MapJob> read_divergence_job(const HeadsCompared& heads, bool distributions,
                                            std::shared_ptr<const TexelReader> reader);

}  // namespace attnscope
