#include "viewer/tiles/computed_maps.h"

#include <deque>

#include "core/base/error.h"
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
    return found;
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
  std::deque<MapCall> calls_;
};

}  // namespace

std::unique_ptr<MapWork> computed_maps(const std::vector<MapCall>& calls) {
  return std::make_unique<ComputedMaps>(calls);
}

}  // namespace attnscope
