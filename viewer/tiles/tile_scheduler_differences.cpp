#include "viewer/tiles/tile_scheduler.h"

#include <algorithm>

#include "viewer/tiles/jobs/difference_jobs.h"

// The scheduler's work on two maps that are compared.

namespace attnscope {

void TileScheduler::order_difference(const DifferenceId& id) {
  HeadCache& of = head(id.head);
  if (of.of(MapNumbers{id.quantity, id.against}).complete) return;
  order({PassKey{id.head, id.quantity, id.against}, Stage::exact},
        [&] { return make_difference_pass_job(id); });
}

void TileScheduler::order_ask(const HeadsCompared& heads, Stage stage) {
  HeadCache& of = head(heads.a);
  const bool all = stage == Stage::exact;
  // Of maps that are read no sample is compared first.
  if (of.reader && !all) return;
  const auto job = make_divergence_job(heads, all);
  if (job->done(of)) return;
  order({heads, stage}, [&] { return job; });
}

/// True where some tile of these numbers is wanted, or the pass of a difference.
bool TileScheduler::is_wanted(const HeadId& id, const MapNumbers& numbers) const {
  const auto is_of = [&](const TileId& tile) {
    return tile.head == id && tile.quantity == numbers.quantity && tile.against == numbers.against;
  };
  const auto any = [&](Stage stage) {
    return std::any_of(tiles(stage).begin(), tiles(stage).end(), is_of);
  };
  return any(Stage::sampled) || (numbers.against && any(Stage::exact));
}

}  // namespace attnscope
