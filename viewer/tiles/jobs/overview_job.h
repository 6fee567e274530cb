#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "viewer/tiles/jobs/map_job.h"

namespace attnscope {

/// Samples rows of a map, stage by stage, until it is exact, or, `first_stage`, of the first stage
/// alone. What a row's numbers are is its heirs'.
class SampledRowsJob : public MapJob {
 public:
  SampledRowsJob(const HeadId& id, const MapNumbers& numbers, bool first_stage)
      : MapJob(id), numbers_(numbers), first_stage_(first_stage) {}

  bool done(const HeadCache& head) const final;
  int64_t pieces_left(const HeadCache& head) const final;
  std::optional<WorkItem> take(HeadCache& head, const JobTools& tools) final;
  void abandon(HeadCache& head) final { head.of(numbers_).sampled = nullptr; }

 protected:
  const MapNumbers& numbers() const { return numbers_; }
  /// Adds rows (ascending) to the overview, without the lock; what it gives is called with the lock
  /// held, once.
  using AddRows = std::function<std::function<void(HeadCache&)>(WorkerScratch&, SampledOverview&)>;
  /// May throw Error; then it may be asked again.
  virtual AddRows add(HeadCache& head, const std::vector<int64_t>& rows, const JobTools& tools) = 0;

 private:
  int stages(const SamplePlan& plan) const { return first_stage_ ? 1 : plan.stages(); }

  const MapNumbers numbers_;
  const bool first_stage_;
};

/// Samples rows of the head, stage by stage, until it is exact, or of the first stage alone.
std::shared_ptr<MapJob> make_overview_job(const HeadId& id, Quantity quantity, bool first_stage);
/// Cuts a tile of the base level or above from the overview after each of its stages.
std::shared_ptr<MapJob> make_cut_job(const TileId& id);

}  // namespace attnscope
