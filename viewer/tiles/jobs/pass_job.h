#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "viewer/tiles/jobs/map_job.h"

namespace attnscope {

/// The completed tiles and the row norms that a panel of rows gives.
struct PanelResult {
  std::vector<TilePtr> completed;
  std::vector<RowNorm> norms;             ///< of the rows, or none
  std::vector<RowNorm> other_norms = {};  ///< of a second head's rows, or none
  double seconds = 0;
};

/// A pass over all rows of a head, a panel a piece, that makes the base level of its pyramid and
/// all above exact. Where a panel's rows come from is its heirs'.
class PassJob : public MapJob {
 public:
  PassJob(const HeadId& id, const MapNumbers& numbers) : MapJob(id), numbers_(numbers) {}

  bool done(const HeadCache& head) const final;
  int64_t pieces_left(const HeadCache& head) const final;
  std::optional<WorkItem> take(HeadCache& head, const JobTools& tools) final;
  void abandon(HeadCache& head) final;

 protected:
  Quantity quantity() const { return numbers_.quantity; }
  const MapNumbers& numbers() const { return numbers_; }
  /// Of a panel: whole rows of texels.
  virtual int64_t panel_rows(const HeadCache& head) const = 0;
  /// Makes room for what the pass finds beside tiles.
  virtual void prepare(HeadCache& head, const JobTools& tools) { (void)head, (void)tools; }
  /// Adds a panel's rows to the tiles. Called without the lock.
  using Panel = std::function<void(WorkerScratch* scratch, PyramidTiles& tiles, PanelResult&)>;
  /// May throw Error; then it may be asked again.
  virtual Panel panel(HeadCache& head, IndexRange rows, const JobTools& tools) = 0;

 private:
  const MapNumbers numbers_;
};

/// Computes the rows; of weights it finds all row norms.
std::shared_ptr<MapJob> make_pass_job(const HeadId& id, Quantity quantity);

}  // namespace attnscope
