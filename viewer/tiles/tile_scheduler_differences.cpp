#include "viewer/tiles/tile_scheduler.h"

#include <algorithm>

#include "viewer/tiles/jobs/difference_jobs.h"

// The scheduler's work on two maps that are compared.

namespace attnscope {

void TileScheduler::order_difference(const DifferenceId& id) {
  HeadCache& of = head(id.head);
  if (of.of(MapNumbers{id.quantity, id.against}).complete) return;
  order(PassKey{id.head, id.quantity, id.against}, [&] { return make_difference_pass_job(id); });
}

void TileScheduler::order_divergence(bool all) {
  if (!wishes_.divergence) return;
  const HeadsCompared& heads = *wishes_.divergence;
  HeadCache& of = head(heads.a);
  // Of maps that are read no sample is compared first.
  if (of.reader && !all) return;
  const auto job = make_divergence_job(heads, all);
  if (job->done(of)) return;
  order(DivergenceKey{heads.a, heads.b, all}, [&] { return job; });
}

std::shared_ptr<const RowDivergence> TileScheduler::find_divergence(
    const HeadsCompared& heads) const {
  const HeadCache* const of = find_head(heads.a);
  if (of == nullptr) return nullptr;
  const auto found = of->divergences.find(heads.b);
  return found == of->divergences.end() ? nullptr : found->second->published;
}

std::string TileScheduler::divergence_problem() const {
  if (!wishes_.divergence) return "";
  const auto& [a, b] = *wishes_.divergence;
  const std::string cause = cause_of(DivergenceKey{a, b, false});
  return cause.empty() ? cause_of(DivergenceKey{a, b, true}) : cause;
}

/// True where some tile or pass of these numbers is wanted.
bool TileScheduler::is_wanted(const HeadId& id, const MapNumbers& numbers) const {
  const auto is_tile = [&](const TileId& tile) {
    return tile.head == id && tile.quantity == numbers.quantity && tile.against == numbers.against;
  };
  const auto is_pass = [&](const DifferenceId& each) {
    return each.head == id && each.quantity == numbers.quantity && each.against == numbers.against;
  };
  return std::any_of(wishes_.tiles.begin(), wishes_.tiles.end(), is_tile) ||
         std::any_of(wishes_.exact_differences.begin(), wishes_.exact_differences.end(), is_pass);
}

}  // namespace attnscope
