#include "viewer/tiles/tile_scheduler.h"

#include <algorithm>
#include <limits>

// The scheduler makes room where memory is short, and takes up again what failed for it.

namespace attnscope {
namespace {

constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max();

}  // namespace

bool TileScheduler::make_room() {
  const uint64_t oldest = store_.oldest(pinned_);
  HeadCache* head = nullptr;
  HeadCache* bound = nullptr;
  for (auto& [id, other] : heads_) {
    // Also of a head whose weights are being worked on: it may be the one that needs the room.
    const bool idle_logits = other.running_on[static_cast<size_t>(Quantity::logits)] == 0;
    if (other.wanted && idle_logits && !wants_pass(id, Quantity::logits) &&
        other.drop(Quantity::logits)) {
      return true;
    }
    // Where only differences from a map are seen, its own tiles are not. Pieces of what is dropped
    // that are still under way find themselves forgotten.
    const bool has_pass = ordered_.contains({PassKey{id, Quantity::weights}, Stage::exact});
    if (other.wanted && !has_pass && !is_wanted(id, {Quantity::weights}) &&
        other.drop(Quantity::weights)) {
      return true;
    }
    if (other.drop_differences(
            [&, head = other.id](const MapNumbers& of) { return is_wanted(head, of); })) {
      return true;
    }
    if (other.running > 0) continue;
    if (other.bound && (bound == nullptr || other.used < bound->used)) bound = &other;
    if (other.wanted || !other.holds_memory()) continue;
    if (head == nullptr || other.used < head->used) head = &other;
  }
  if (head != nullptr && head->used < oldest) {
    head->drop();
  } else if (oldest != kNever) {
    store_.drop_oldest(pinned_);
  } else if (bound != nullptr) {
    bound->bound = nullptr;
  } else {
    return drop_sketches();
  }
  return true;
}

/// Of heads that are not in the atlas any more.
bool TileScheduler::drop_sketches() {
  bool any = false;
  for (auto& [id, head] : heads_) any = (!head.sketch_wanted && head.drop_sketch()) || any;
  return any;
}

MemoryReservation TileScheduler::reserve(int64_t bytes, std::string_view purpose) {
  while (bytes <= budget_.limit() && budget_.available() < bytes && make_room()) {
  }
  if (budget_.available() < bytes) drop_samples(bytes);
  return budget_.reserve(bytes, purpose);
}

/// All that is seen of the sample stands in the store.
bool TileScheduler::is_cut(const HeadId& id, const MapNumbers& numbers,
                           const OverviewProgress& sampled) const {
  const int stages = sampled.plan.stages();
  if (sampled.gave_way() || sampled.stages_done < stages) return false;
  const HeadCache& of = heads_.at(id);
  return std::all_of(
      tiles(Stage::sampled).begin(), tiles(Stage::sampled).end(), [&](const TileId& tile) {
        const bool cut_of_it = tile.head == id && tile.quantity == numbers.quantity &&
                               tile.against == numbers.against &&
                               tile.level >= of.geometry.base_level;
        return !cut_of_it || of.exact_tile(tile) != nullptr ||
               (sampled.stages_of(tile) == stages && store_.holds(tile));
      });
}

/// Samples of which nothing more is to be cut as things stand, where letting go of them makes room
/// for so many bytes.
void TileScheduler::drop_samples(int64_t bytes) {
  std::vector<OverviewProgress*> samples;
  int64_t room = budget_.available();
  const auto add = [&](const HeadId& id, const MapNumbers& numbers,
                       const std::shared_ptr<OverviewProgress>& sampled) {
    // A piece under way may be cutting from it what is not wanted any more.
    if (sampled == nullptr || sampled.use_count() > 1 || !is_cut(id, numbers, *sampled)) return;
    samples.push_back(sampled.get());
    room += sampled->reservation.bytes();
  };
  for (const auto& [id, head] : heads_) {
    for (const Quantity quantity : {Quantity::weights, Quantity::logits}) {
      add(id, {quantity}, head.quantities[static_cast<size_t>(quantity)].sampled);
    }
    for (const auto& [numbers, of] : head.differences) add(id, numbers, of.sampled);
  }
  if (room < bytes) return;
  for (OverviewProgress* const sampled : samples) {
    if (budget_.available() < bytes) sampled->give_way();
  }
}

bool TileScheduler::lacks_memory() const {
  const auto for_memory = [](const auto& failed) { return failed.second.for_memory; };
  return std::any_of(failed_.begin(), failed_.end(), for_memory) ||
         std::any_of(failed_heads_.begin(), failed_heads_.end(), for_memory);
}

/// True where work that failed for memory is not given up: some runs, or less is taken than then.
bool TileScheduler::may_find_memory() const {
  return lacks_memory() && (any_running() || !taken_at_try_ || budget_.used() < *taken_at_try_);
}

bool TileScheduler::take_up_again() {
  if (any_running() || !may_find_memory()) return false;
  taken_at_try_ = budget_.used();
  const auto for_memory = [](const auto& failed) { return failed.second.for_memory; };
  std::erase_if(failed_, for_memory);
  std::erase_if(failed_heads_, for_memory);
  if (!any_failed()) problem_.clear();
  order_jobs();
  for (const auto& [key, failure] : std::map(failed_)) fail_dependents(key);
  return true;
}

}  // namespace attnscope
