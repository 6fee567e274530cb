#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "core/base/memory_budget.h"
#include "core/heads/head_sketch.h"
#include "viewer/tiles/texels/pyramid_tiles.h"
#include "viewer/tiles/texels/sampled_overview.h"
#include "viewer/tiles/worker_scratch.h"

namespace attnscope {

/// The norms of a head's rows as far as they are known. Not thread-safe.
class NormTable {
 public:
  static int64_t bytes(int64_t rows) { return rows * static_cast<int64_t>(sizeof(RowNorm) + 1); }
  bool complete() const { return !known_.empty() && count_ == static_cast<int64_t>(known_.size()); }
  bool known(IndexRange rows) const;
  bool known(std::span<const int64_t> rows) const;
  const std::vector<RowNorm>& norms() const { return norms_; }
  int64_t reserved() const { return memory_.bytes(); }

  /// Makes room for all rows, once.
  void prepare(int64_t rows, const Reserve& reserve);
  void set(int64_t first, std::span<const RowNorm> norms);
  void set(std::span<const int64_t> rows, std::span<const RowNorm> norms);

 private:
  MemoryReservation memory_;
  std::vector<RowNorm> norms_;
  std::vector<uint8_t> known_;
  int64_t count_ = 0;
};

/// Sampled rows on their way into an overview, by batches of a stage.
struct OverviewProgress {
  OverviewProgress(const MapGeometry& geometry, Quantity quantity, MemoryReservation memory)
      : reservation(std::move(memory)), plan(geometry.rows), overview(geometry, quantity) {}
  MemoryReservation reservation;
  SamplePlan plan;
  SampledOverview overview;
  int stages_done = 0;
  std::map<TileId, int> cut;  ///< how many stages the tile in the store shows
  std::vector<int64_t> rows;  ///< that the stage at hand adds
  size_t next = 0;            ///< of them that is handed out next
  size_t rows_done = 0;

  int stages_of(const TileId& id) const {
    const auto found = cut.find(id);
    return found == cut.end() ? 0 : found->second;
  }
};

/// A pass over all rows of a head on its way to exact tiles.
struct PassProgress {
  PassProgress(const HeadId& head, Quantity quantity, const MapGeometry& geometry)
      : tiles(head, quantity, geometry) {}
  PyramidTiles tiles;
  int64_t next_row = 0;
  int64_t rows_done = 0;
  double worker_seconds = 0;  ///< spent on rows_done
};

/// All that is kept of one head but its finer tiles. Not thread-safe.
struct HeadCache {
  struct OfQuantity {
    std::shared_ptr<OverviewProgress> sampled;
    std::shared_ptr<PassProgress> pass;
    MemoryReservation exact_memory;
    std::map<TileId, TilePtr> exact;  ///< from the base level to the top, as far as they are done
    bool complete = false;
  };

  HeadId id;
  const AttentionProblem* problem = nullptr;  ///< null: its map is read, not computed
  MapGeometry geometry;
  NormTable norms;
  std::shared_ptr<const BoundMap> bound;
  std::array<OfQuantity, 2> quantities;
  bool binding = false, checked = false;
  bool asked_cache = false;  ///< for its norms
  bool norms_on_disk = false;
  int64_t running = 0;                  ///< pieces of work under way, binding included
  std::array<int64_t, 2> running_on{};  ///< of them, pieces on each quantity
  bool wanted = false;
  /// Kept apart from what drop() forgets: an atlas has many, and each is small.
  std::shared_ptr<const HeadSketch> sketch;
  MemoryReservation sketch_memory;
  bool sketch_wanted = false;
  uint64_t used = 0;

  OfQuantity& of(Quantity quantity) { return quantities[static_cast<size_t>(quantity)]; }
  TilePtr exact_tile(const TileId& tile) const;
  /// Forgets the sketch; true where there was one.
  bool drop_sketch();
  /// Of pyramids, samples and norms.
  int64_t bytes() const;
  bool holds_memory() const { return bound != nullptr || bytes() > 0; }
  /// Forgets all that can be computed again.
  void drop();
  /// Forgets the tiles of one quantity; true where there were any.
  bool drop(Quantity quantity);
};

}  // namespace attnscope
