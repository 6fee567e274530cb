#include "viewer/tiles/tile_scheduler.h"

// The scheduler orders and finds tracks.

namespace attnscope {

void TileScheduler::order_tracks(bool exact) {
  if (!wishes_.tracks || !work_->has(*wishes_.tracks, Quantity::weights)) return;
  const HeadId id = *wishes_.tracks;
  const HeadCache& of = head(id);
  if (of.problem == nullptr || (of.tracks != nullptr && (of.tracks->exact || !exact))) return;
  order(TracksKey{id, exact}, [&] { return work_->tracks_job(id, exact); });
}

std::shared_ptr<const HeadTracks> TileScheduler::find_tracks(const HeadId& id) const {
  const HeadCache* const of = find_head(id);
  return of == nullptr ? nullptr : of->tracks;
}

std::string TileScheduler::tracks_problem(const HeadId& id) const {
  const std::string sampled = cause_of(TracksKey{id, false});
  return sampled.empty() ? cause_of(TracksKey{id, true}) : sampled;
}

}  // namespace attnscope
