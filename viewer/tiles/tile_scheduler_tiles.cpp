#include "viewer/tiles/tile_scheduler.h"

#include <algorithm>
#include <utility>

#include "viewer/tiles/jobs/difference_jobs.h"
#include "viewer/tiles/jobs/overview_job.h"

// The scheduler orders tiles, and the passes and samples that they are cut from.

namespace attnscope {

void TileScheduler::order_ask(const TileId& id, Stage stage) {
  if (stage == Stage::sampled) {
    // Together, where the first of them stands.
    if (!std::exchange(tiles_ordered_, true)) order_tiles();
    return;
  }
  if (id.against) return order_difference({id.head, id.quantity, *id.against});
  for (const Quantity quantity : {Quantity::logits, Quantity::weights}) {
    if (wants_pass(id.head, quantity)) order_pass(id.head, quantity);
  }
}

/// Something that covers the view comes first, then what is seen of it up close: the overview's
/// later stages are of rows that may not be seen at all.
void TileScheduler::order_tiles() {
  const auto is_fine = [this](const TileId& id) {
    return id.level < head(id.head).geometry.base_level;
  };
  for (const bool first_stage : {true, false}) {
    for (const TileId& id : tiles(Stage::sampled)) {
      if (!is_fine(id)) order_coarse_tile(id, first_stage);
    }
    for (const TileId& id : tiles(Stage::sampled)) {
      if (first_stage && is_fine(id)) order_fine_tile(id);
    }
  }
}

void TileScheduler::order_fine_tile(const TileId& id) {
  if (store_.find(id) != nullptr) return;
  HeadCache& of = head(id.head);
  order({id},
        [&] { return id.against ? make_difference_tile_job(id, of) : work_->tile_job(id, of); });
}

void TileScheduler::order_coarse_tile(const TileId& id, bool first_stage) {
  HeadCache& of = head(id.head);
  if (of.exact_tile(id) != nullptr) return;
  // A map that is read is not sampled.
  const int stages = of.problem == nullptr ? 0 : SamplePlan(of.geometry.rows).stages();
  if (stages == 0 && id.against) {
    return order_difference({id.head, id.quantity, *id.against});
  }
  if (stages == 0) return order_pass(id.head, id.quantity);
  HeadCache::OfQuantity& kept = of.of(MapNumbers{id.quantity, id.against});
  auto& sampled = kept.sampled;
  if (sampled && sampled->gave_way()) {
    // The pass for which it gave way brings the tile as well.
    if (store_.find(id) != nullptr || kept.pass != nullptr) return;
    sampled = nullptr;
  }
  if (sampled && store_.find(id) == nullptr) sampled->cut.erase(id);
  // Cutting comes first: each stage of the overview is shown before the next begins.
  if (!sampled || sampled->stages_of(id) < stages) order({id}, [&] { return make_cut_job(id); });
  const int wanted = first_stage ? 1 : stages;
  if (sampled && sampled->stages_done >= wanted) return;
  order({PassKey{id.head, id.quantity, id.against, first_stage}}, [&] {
    return id.against
               ? make_difference_overview_job({id.head, id.quantity, *id.against}, first_stage)
               : make_overview_job(id.head, id.quantity, first_stage);
  });
}

void TileScheduler::order_pass(const HeadId& id, Quantity quantity) {
  HeadCache& of = head(id);
  if (of.of(quantity).complete) return;
  order({PassKey{id, quantity}, Stage::exact}, [&] { return work_->pass_job(id, quantity); });
}

bool TileScheduler::wants_logits(const HeadId& head) const {
  const auto& wanted = tiles(Stage::sampled);
  return std::any_of(wanted.begin(), wanted.end(), [&](const TileId& tile) {
    return tile.head == head && tile.quantity == Quantity::logits;
  });
}

/// Of a head whose pyramid is to be exact.
bool TileScheduler::wants_pass(const HeadId& id, Quantity quantity) const {
  if (!work_->has(id, quantity)) return false;
  return quantity == Quantity::weights || wants_logits(id) || !work_->has(id, Quantity::weights);
}

/// Of the base level and above a tile is exact once the pass is through; until then it is sampled,
/// or nothing where that failed.
std::string TileScheduler::tile_problem(const TileId& id) const {
  const HeadCache* const of = find_head(id.head);
  if (of == nullptr) return "";
  if (id.level < of->geometry.base_level) return store_.holds(id) ? "" : cause_of({id});
  if (of->exact_tile(id) != nullptr) return "";
  const PassKey pass{id.head, id.quantity, id.against};
  const JobKey exactly{pass, Stage::exact};
  return cause_of(ordered_.contains(exactly) ? exactly : JobKey{pass});
}

}  // namespace attnscope
