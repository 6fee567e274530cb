#pragma once

#include <memory>

#include "viewer/tiles/jobs/map_job.h"

namespace attnscope {

// Jobs of two heads, computed or read: the difference of their maps, taken entry by entry before
// anything is pooled, and how far their rows are from one another. What is kept of it is kept with
// the head of side A. Heads that are computed have to be bound; those that are read must hold
// entries, not blocks (MapSource::block is 1). An entry that either file lacks has no difference,
// and a row that is not in both as a whole no divergence.

/// A tile finer than the base level; its id has `against`.
std::shared_ptr<MapJob> make_difference_tile_job(const TileId& id, const HeadCache& head);
/// Sampled rows of the base level; of the first stage, or of all. Of heads that are computed.
std::shared_ptr<MapJob> make_difference_overview_job(const DifferenceId& id, bool first_stage);
/// All rows, for exact tiles of the base level and above; finds the row norms of both heads.
std::shared_ptr<MapJob> make_difference_pass_job(const DifferenceId& id);
/// The divergence of a sample of the rows, where they are computed; `all`: of the others.
std::shared_ptr<MapJob> make_divergence_job(const HeadsCompared& heads, bool all);
/// Rows of the sample.
inline constexpr int64_t kDivergenceSample = 256;

}  // namespace attnscope
