#include "viewer/tiles/computed_maps.h"

#include <fmt/core.h>

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

#include "core/base/error.h"
#include "core/problem/reordered_problem.h"
#include "viewer/tiles/jobs/fine_tile_job.h"
#include "viewer/tiles/jobs/line_job.h"
#include "viewer/tiles/jobs/mass_job.h"
#include "viewer/tiles/jobs/pass_job.h"
#include "viewer/tiles/jobs/probe_job.h"
#include "viewer/tiles/jobs/sketch_job.h"
#include "viewer/tiles/jobs/tracks_job.h"

namespace attnscope {
namespace {

class ComputedMaps : public MapWork {
 public:
  explicit ComputedMaps(const std::vector<MapCall>& calls) : calls_(calls.begin(), calls.end()) {}

  void add(const std::vector<MapCall>& calls) override {
    calls_.insert(calls_.end(), calls.begin(), calls.end());
  }

  int64_t order_number(const MapPlaces& places) override {
    const auto known = std::find(orders_.begin(), orders_.end(), places);
    const auto number = known - orders_.begin() + 1;
    if (known == orders_.end()) orders_.push_back(places);
    return number;
  }

  MapGeometry geometry(const HeadId& id) const override {
    const AttentionProblem& problem = *call(id)->problem;
    return MapGeometry::of(problem.num_queries(), problem.num_keys());
  }
  bool has(const HeadId& id, Quantity quantity) const override {
    return quantity == Quantity::logits || !is_signed(call(id)->problem->score());
  }

  const MapCall* call(const HeadId& id) const override {
    const bool known = id.call >= 0 && id.call < static_cast<int64_t>(calls_.size());
    const MapCall* const found = known ? &calls_[static_cast<size_t>(id.call)] : nullptr;
    if (found == nullptr || id.batch < 0 || id.batch >= found->problem->batch() || id.head < 0 ||
        id.head >= found->problem->num_heads()) {
      throw usage_error("the capture has no map of " + head_text(id));
    }
    return id.order == 0 ? found : reordered(id, *found);
  }

  std::shared_ptr<MapJob> probe_job(const ProbeRequest& request) const override {
    return make_probe_job(request);
  }
  std::shared_ptr<MapJob> line_job(const LineRequest& request,
                                   const HeadCache& head) const override {
    return make_line_job(request, head);
  }
  std::shared_ptr<MapJob> tile_job(const TileId& id, const HeadCache& head) const override {
    return make_fine_tile_job(id, head);
  }
  std::shared_ptr<MapJob> pass_job(const HeadId& id, Quantity quantity) const override {
    return make_pass_job(id, quantity);
  }
  std::shared_ptr<MapJob> mass_job(const MassRequest& request,
                                   const HeadCache& head) const override {
    return make_mass_job(request, head);
  }
  std::shared_ptr<MapJob> sketch_job(const HeadId& id, bool exact) const override {
    if (!has(id, Quantity::weights)) return nullptr;
    return exact ? make_exact_sketch_job(id) : make_sketch_job(id);
  }
  std::shared_ptr<MapJob> tracks_job(const HeadId& id, bool exact) const override {
    return make_tracks_job(id, exact);
  }

 private:
  /// A call of its own, made when it is first asked for.
  const MapCall* reordered(const HeadId& id, const MapCall& stored) const {
    if (id.order < 0 || id.order > static_cast<int64_t>(orders_.size())) {
      throw usage_error(fmt::format("no order of tokens has the number {}", id.order));
    }
    MapCall& call = reordered_[{id.call, id.order}];
    if (call.problem) return &call;
    const MapPlaces& places = orders_[static_cast<size_t>(id.order - 1)];
    const AttentionProblem& of = *stored.problem;
    const auto fits = [](const PlaceOrder& order, int64_t tokens) {
      return order.is_identity() || static_cast<int64_t>(order.tokens().size()) == tokens;
    };
    if (!fits(places.rows, of.num_queries()) || !fits(places.keys, of.num_keys())) {
      throw usage_error(of.name() + ": an order of other tokens than its own");
    }
    call.problem = std::make_shared<const AttentionProblem>(reordered_problem(of, places));
    return &call;
  }

  std::deque<MapCall> calls_;
  std::vector<MapPlaces> orders_;  ///< by their numbers, from 1 on
  /// By call and order; what is there stays where it is. Under the owner's lock, as all of this.
  mutable std::map<std::pair<int64_t, int64_t>, MapCall> reordered_;
};

}  // namespace

std::unique_ptr<MapWork> computed_maps(const std::vector<MapCall>& calls) {
  return std::make_unique<ComputedMaps>(calls);
}

}  // namespace attnscope
