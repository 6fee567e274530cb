#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/base/memory_budget.h"
#include "core/heads/head_sketch.h"
#include "viewer/tiles/jobs/worker_scratch.h"
#include "viewer/tiles/texels/pyramid_tiles.h"
#include "viewer/tiles/texels/sampled_overview.h"
#include "viewer/tiles/texels/texel_reader.h"
#include "viewer/view/maps/head_tracks.h"

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

/// Which numbers of a head: its own, or their difference from another's.
struct MapNumbers {
  Quantity quantity = Quantity::weights;
  std::optional<Against> against = {};
  friend auto operator<=>(const MapNumbers&, const MapNumbers&) = default;
};

/// Sampled rows on their way into an overview, by batches of a stage.
struct OverviewProgress {
  OverviewProgress(const MapGeometry& geometry, const MapNumbers& numbers, MemoryReservation memory)
      : reservation(std::move(memory)),
        plan(geometry.rows),
        overview(std::in_place, geometry, numbers.quantity, numbers.against.has_value()) {}
  MemoryReservation reservation;
  SamplePlan plan;
  std::optional<SampledOverview> overview;  ///< nothing: gave_way()
  int stages_done = 0;
  std::map<TileId, int> cut;  ///< how many stages the tile in the store shows
  std::vector<int64_t> rows;  ///< that the stage at hand adds
  size_t next = 0;            ///< of them that is handed out next
  size_t rows_done = 0;

  /// Lets go of the rows, of which all that is seen was cut.
  void give_way() {
    overview.reset();
    reservation = {};
  }
  bool gave_way() const { return !overview; }
  int stages_of(const TileId& id) const {
    const auto found = cut.find(id);
    return found == cut.end() ? 0 : found->second;
  }
};

/// A pass over all rows of a head on its way to exact tiles.
struct PassProgress {
  PassProgress(const HeadId& head, const MapNumbers& numbers, const MapGeometry& geometry)
      : tiles(head, numbers.quantity, geometry, numbers.against) {}
  PyramidTiles tiles;
  int64_t next_row = 0;
  int64_t rows_done = 0;
  double worker_seconds = 0;  ///< spent on rows_done
};

/// Rows of a head that are compared with another's.
struct DivergenceProgress {
  MemoryReservation reservation;
  std::vector<double> rows;       ///< NaN while a row is not compared
  std::vector<uint8_t> is_taken;  ///< handed out, or done
  size_t next = 0;                ///< of the sample
  int64_t next_row = 0;           ///< after the sample
  int64_t computed = 0;
  std::shared_ptr<const RowDivergence> published;
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
  std::shared_ptr<const TexelReader> reader;  ///< which reads it; null: it is computed
  MapGeometry geometry;
  NormTable norms;
  std::shared_ptr<const BoundMap> bound;
  std::array<OfQuantity, 2> quantities;
  std::map<MapNumbers, OfQuantity> differences;                       ///< from other heads
  std::map<HeadId, std::shared_ptr<DivergenceProgress>> divergences;  ///< the same
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
  std::shared_ptr<const HeadTracks> tracks;
  MemoryReservation tracks_memory;
  uint64_t used = 0;

  OfQuantity& of(Quantity quantity) { return quantities[static_cast<size_t>(quantity)]; }
  OfQuantity& of(const MapNumbers& numbers) {
    return numbers.against ? differences[numbers] : of(numbers.quantity);
  }
  /// Null where nothing is kept of these numbers.
  const OfQuantity* find(const MapNumbers& numbers) const {
    if (!numbers.against) return &quantities[static_cast<size_t>(numbers.quantity)];
    const auto found = differences.find(numbers);
    return found == differences.end() ? nullptr : &found->second;
  }
  TilePtr exact_tile(const TileId& tile) const;
  /// Forgets the sketch; true where there was one.
  bool drop_sketch();
  /// Of pyramids, samples, norms and tracks.
  int64_t bytes() const;
  bool holds_memory() const { return bound != nullptr || bytes() > 0; }
  /// Forgets all that can be computed again.
  void drop();
  /// Forgets the tiles of one quantity; true where there were any.
  bool drop(Quantity quantity);
  /// Forgets the differences that are not to be kept; true where there were any.
  bool drop_differences(const std::function<bool(const MapNumbers&)>& is_kept);
};

}  // namespace attnscope
